package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	oldrand "math/rand"
	newrand "math/rand/v2"
	"time"

	"blockbase"
	"blockbase/config"
	"blockbase/data"
	"blockbase/http"
	"blockbase/log"
	"blockbase/secrets"
)

type Task struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Done  bool   `json:"done"`
}

type Nothing = map[string]any

func echo(_ *blockbase.Context, input map[string]any) (any, error) {
	return input, nil
}

type Refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func refuse(_ *blockbase.Context, input Refusal) (any, error) {
	// An error that another one wraps keeps its code.
	return nil, fmt.Errorf("wrapped: %w", blockbase.Error{Code: input.Code, Message: "refused: " + input.Message})
}

func fail(*blockbase.Context, Nothing) (any, error) {
	return nil, errors.New("it broke")
}

func crash(*blockbase.Context, Nothing) (any, error) {
	var task *Task
	return task.Title, nil
}

type Tidy struct {
	Titles []string `json:"titles"`
	Limit  *int     `json:"limit"`
}

type Settings struct {
	Mark string `json:"mark"`
}

func tidy(context *blockbase.Context, input Tidy) (any, error) {
	var made []data.M
	for _, title := range input.Titles {
		made = append(made, data.M{"title": title})
	}
	ids, err := data.CreateMany("task", made)
	if err != nil {
		return nil, err
	}
	first, err := data.Update[Task]("task", ids[0], data.M{"done": true})
	if err != nil {
		return nil, err
	}
	open, err := data.Query[Task]("task", data.M{"filters": []data.M{{"field": "done", "value": false}}})
	if err != nil {
		return nil, err
	}
	condition := data.M{"_or": []data.M{{"done": true}, {"title": "b"}}}
	either, err := data.Query[Task]("task", data.M{"where": condition})
	if err != nil {
		return nil, err
	}
	counted, err := data.Aggregate("task", data.M{"fn": "count"})
	if err != nil {
		return nil, err
	}
	deleted, err := data.DeleteMany("task", ids)
	if err != nil {
		return nil, err
	}
	gone := "not_found"
	if task, err := data.Get[Task]("task", ids[0]); err != nil || task != nil {
		gone = "there"
	}
	_, wrong := data.Create[Task]("task", data.M{"priority": 99})
	settings, err := config.Get[Settings]()
	if err != nil {
		return nil, err
	}
	// Waiting, and a goroutine that ends meanwhile, are part of the language.
	done := make(chan bool)
	go func() {
		time.Sleep(time.Millisecond)
		done <- context.Remaining() > 0 && !context.Cancelled() && context.Err() == nil
	}()
	log.Info("tidied", "open", len(open.Data))
	return map[string]any{
		"done": first.Done, "open": len(open.Data), "either": len(either.Data), "all": counted.Value, "deleted": len(deleted), "gone": gone,
		"wrong": blockbase.CodeOf(wrong), "mark": settings.Mark, "block": context.Block, "via": context.Actor.Via, "hasTime": <-done,
	}, nil
}

type Book struct {
	Title string `json:"title"`
}

type Project struct {
	Name string `json:"name"`
}

func each[T any](page data.Page[T], text func(T) string) []string {
	texts := []string{}
	for _, record := range page.Data {
		texts = append(texts, text(record))
	}
	return texts
}

func conditions(*blockbase.Context, Nothing) (any, error) {
	open := data.M{"done": false, "project.owner.name": data.M{"ilike": "an"}}
	page, err := data.Query[Task]("task", data.M{"where": open, "sort": "-created_at"})
	if err != nil {
		return nil, err
	}
	books, err := data.Query[Book]("book", data.M{"where": data.M{"_not": data.M{"lent": true}}})
	if err != nil {
		return nil, err
	}
	some := data.M{"task_by_project": data.M{"some": data.M{"done": true}}}
	projects, err := data.Query[Project]("project", data.M{"where": some})
	if err != nil {
		return nil, err
	}
	both := data.M{"every": data.M{"title": data.M{"ilike": "a"}}, "none": data.M{"done": true}}
	idle, err := data.Query[Project]("project", data.M{"where": data.M{"task_by_project": both}})
	if err != nil {
		return nil, err
	}
	counted, err := data.Aggregate("task", data.M{"fn": "count", "where": data.M{"project.owner.name": "Ann"}})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"open":     each(page, func(task Task) string { return task.Title }),
		"books":    each(books, func(book Book) string { return book.Title }),
		"projects": each(projects, func(project Project) string { return project.Name }),
		"idle":     each(idle, func(project Project) string { return project.Name }),
		"counted":  counted.Value,
	}, nil
}

// A generator that exists before the call.
var own = oldrand.New(oldrand.NewSource(oldrand.Int63()))

func chance(*blockbase.Context, Nothing) (any, error) {
	bytes := make([]byte, 16)
	if _, err := rand.Read(bytes); err != nil {
		return nil, err
	}
	return map[string]any{
		"seconds": time.Now().Unix(), "random": hex.EncodeToString(bytes),
		"old": fmt.Sprint(oldrand.Int63()), "new": fmt.Sprint(newrand.Uint64()), "own": fmt.Sprint(own.Int63()),
	}, nil
}

type Sign struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

func sign(_ *blockbase.Context, input Sign) (any, error) {
	code := hmac.New(sha256.New, []byte(input.Key))
	code.Write([]byte(input.Text))
	sum := code.Sum(nil)
	return map[string]any{"hmac": hex.EncodeToString(sum), "fits": hmac.Equal(sum, append([]byte(nil), sum...))}, nil
}

type Fetch struct {
	URL string `json:"url"`
}

func fetch(_ *blockbase.Context, input Fetch) (any, error) {
	header := blockbase.Header{{Name: "x-from", Value: "probe"}}
	response, err := http.Send(http.Request{Method: "POST", URL: input.URL, Header: header, Body: []byte("hello")})
	if err != nil {
		return nil, err
	}
	return map[string]any{"status": response.Status, "body": string(response.Body)}, nil
}

func signedOnly(_ *blockbase.Context, request *blockbase.Request) (*blockbase.Response, error) {
	key, err := secrets.Get("HOOK_KEY")
	if err != nil {
		return nil, err
	}
	code := hmac.New(sha256.New, []byte(key))
	code.Write(request.Body)
	given, _ := hex.DecodeString(request.Header.Get("X-Signature"))
	if !hmac.Equal(given, code.Sum(nil)) {
		return blockbase.Text(401, "wrong signature"), nil
	}
	return blockbase.JSON(201, map[string]any{"method": request.Method, "query": request.Query})
}

func silent(*blockbase.Context, *blockbase.Request) (*blockbase.Response, error) {
	return nil, nil
}

func onTask(_ *blockbase.Context, event blockbase.Event[blockbase.Change[Task]]) error {
	if event.OccurredAt.IsZero() || event.Attempt < 1 {
		return errors.New("an event without a time or an attempt")
	}
	seen := data.M{"source": event.Payload.ID, "title": event.Payload.After.Title}
	_, err := data.Upsert[json.RawMessage]("seen", seen, "source")
	return err
}

func init() {
	blockbase.Action("echo", blockbase.ActionOptions{Description: "Answers with its input."}, echo)
	blockbase.Action("refuse", blockbase.ActionOptions{Description: "Fails with a code."}, refuse)
	blockbase.Action("fail", blockbase.ActionOptions{Description: "Fails without one."}, fail)
	blockbase.Action("crash", blockbase.ActionOptions{Description: "Ends badly."}, crash)
	blockbase.Action("tidy", blockbase.ActionOptions{Description: "Makes tasks and deletes them."}, tidy)
	blockbase.Action("conditions", blockbase.ActionOptions{Description: "Asks with conditions."}, conditions)
	blockbase.Action("chance", blockbase.ActionOptions{Description: "The time, and randomness."}, chance)
	blockbase.Action("sign", blockbase.ActionOptions{Description: "Signs a text."}, sign)
	blockbase.Action("fetch", blockbase.ActionOptions{Description: "Sends a request."}, fetch)
	blockbase.Hook("signed_only", blockbase.HookOptions{Description: "Takes what is signed."}, signedOnly)
	blockbase.Hook("silent", blockbase.HookOptions{Description: "Says nothing."}, silent)
	blockbase.Subscription("on_task", blockbase.SubscriptionOptions{Event: "data.task.created", Consumer: "probe:tasks"}, onTask)
}

func main() {}
