// What the benchmark calls of a block in Go.
package main

import (
	"blockbase"
	"blockbase/data"
	"blockbase/http"
)

func echo(_ *blockbase.Context, input map[string]any) (map[string]any, error) {
	return input, nil
}

type Get struct {
	ID string `json:"id"`
}

func get(_ *blockbase.Context, input Get) (*map[string]any, error) {
	return data.Get[map[string]any]("task", input.ID)
}

func increase(_ *blockbase.Context, input Get) (map[string]any, error) {
	if _, err := data.Get[map[string]any]("task", input.ID); err != nil {
		return nil, err
	}
	return data.Update[map[string]any]("task", input.ID, map[string]any{"priority": map[string]int{"$inc": 1}})
}

type Wait struct {
	URL string `json:"url"`
}

func wait(_ *blockbase.Context, input Wait) (int, error) {
	response, err := http.Send(http.Request{URL: input.URL})
	if err != nil {
		return 0, err
	}
	return int(response.Status), nil
}

func init() {
	blockbase.Action("echo", blockbase.ActionOptions{Description: "Answers with its input."}, echo)
	blockbase.Action("get", blockbase.ActionOptions{Description: "Answers with a task."}, get)
	blockbase.Action("increase", blockbase.ActionOptions{Description: "Reads a task, and then increases its priority."}, increase)
	blockbase.Action("wait", blockbase.ActionOptions{Description: "Waits for the answer of whoever listens there."}, wait)
}

func main() {}
