// Command trimtab makes new operators, starts a Kubernetes control plane on this machine, shows operators at work, and finds
// mistakes in the code of operators. It is also a tool for go vet -vettool.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/cli"
	"github.com/trimtab-dev/trimtab/lint"
)

func main() {
	if lint.IsVet(os.Args[1:]) {
		lint.Vet()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
