package graph_test

import (
	"context"
	"fmt"

	"github.com/trimtab-dev/trimtab/graph"
)

// A web server needs a database, and there is nothing yet. The first Run does what can be done now,
// and says what the rest waits for. It is called again whenever something has changed.
func Example() {
	nodes := []graph.Node{
		{Key: "web", Wanted: true, Needs: []graph.Key{"database"}},
		{Key: "database", Wanted: true},
		{Key: "settings", Wanted: true},
	}
	if err := graph.Check(nodes); err != nil {
		fmt.Println(err)
		return
	}
	for i := range nodes { // what a caller would have stored, and observed
		nodes[i].Facts = graph.Facts{Recorded: true, Presence: graph.Absent}
	}
	do := func(_ context.Context, key graph.Key, action graph.Action) (graph.Facts, error) {
		facts := graph.Facts{Recorded: true, Presence: graph.Present, Applied: true, Health: graph.Current}
		if key == "database" {
			facts.Health = graph.InProgress // it takes a while to start
		}
		return facts, nil
	}
	result := graph.Run(context.Background(), nodes, do, graph.Options{})
	for _, step := range result.Done {
		fmt.Println(step.Action, step.Key)
	}
	for _, step := range result.Plan.Waiting {
		fmt.Printf("%s waits for %s: %s\n", step.Key, step.On[0].Key, step.On[0].Why)
	}
	// Output:
	// create database
	// create settings
	// database waits for database: is not ready
	// web waits for database: is not ready
}
