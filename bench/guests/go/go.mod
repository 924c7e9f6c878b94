module bench-go

go 1.24

require blockbase v0.0.0

// `blockbase block build` puts the SDK there.
replace blockbase => ./.blockbase/sdk
