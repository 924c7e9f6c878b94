module blockbase

go 1.24
