package main

import (
	"fmt"

	"blockbase"
	"blockbase/config"
	"blockbase/log"
)

type Greet struct {
	Name string `json:"name" description:"Whom to greet."`
}

type Greeting struct {
	Message string `json:"message"`
}

type Settings struct {
	Greeting string `json:"greeting"`
}

// POST /api/v1/blocks/{{name}}/actions/greet
func greet(_ *blockbase.Context, input Greet) (Greeting, error) {
	settings, err := config.Get[Settings]()
	if err != nil {
		return Greeting{}, err
	}
	return Greeting{Message: fmt.Sprintf("%s, %s!", settings.Greeting, input.Name)}, nil
}

// Any request to /api/v1/hooks/{{name}}/ping
func ping(_ *blockbase.Context, request *blockbase.Request) (*blockbase.Response, error) {
	return blockbase.JSON(200, map[string]any{"method": request.Method, "bytes": len(request.Body)})
}

// Every change of a record of the object `task`. A struct in the place of the map would take only the records that fit it: an event that
// a handler fails at is tried again, and is dead in the end.
func onTask(_ *blockbase.Context, event blockbase.Event[blockbase.Change[map[string]any]]) error {
	log.Info(event.Topic, "task", event.Payload.ID)
	return nil
}

func init() {
	blockbase.Action("greet", blockbase.ActionOptions{Description: "Greets somebody by name."}, greet)
	blockbase.Hook("ping", blockbase.HookOptions{Description: "Tells what came."}, ping)
	blockbase.Subscription("on_task", blockbase.SubscriptionOptions{Event: "data.task.#", Consumer: "{{name}}:tasks"}, onTask)
}

func main() {}
