// Command simcloud serves a cloud of package simcloud, to try an operator by hand:
//
//	simcloud --addr 127.0.0.1:8089 --assign-ids --takes 10s
//	curl 127.0.0.1:8089/-/log
//	curl -X POST -d '{"method":"POST","status":503,"times":3}' 127.0.0.1:8089/-/faults
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/trimtab-dev/trimtab/external/simcloud"
)

func main() {
	var o simcloud.Options
	address := flag.String("addr", "127.0.0.1:8089", "where to serve it")
	flag.BoolVar(&o.AssignIDs, "assign-ids", false, "the cloud chooses the ids of items")
	flag.BoolVar(&o.Tokens, "tokens", false, "a create with the Idempotency-Key of an earlier one returns the same item")
	flag.DurationVar(&o.Takes, "takes", 0, "changes are operations that take this long")
	flag.DurationVar(&o.Lag, "lag", 0, "reads may miss changes for this long")
	flag.StringVar(&o.Login, "login", "", "the bearer token that callers have to send; empty means none")
	flag.BoolVar(&o.Keys, "keys", false, "each item gets a key, which only the answer to its create shows, or its operation")
	flag.IntVar(&o.Quota, "quota", 0, "calls in a second; 0 means any number")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := simcloud.Serve(ctx, o, *address, os.Stdout, nil); err != nil {
		fmt.Fprintln(os.Stderr, "simcloud:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to do
	}
}
