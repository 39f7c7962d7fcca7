// Command trimtab makes new operators, starts a Kubernetes control plane on this machine, shows operators at work, finds
// mistakes in the code of operators, and explains why an object of any cluster is not ready. It is also a tool for go vet
// -vettool, and as kubectl-trimtab a plugin of kubectl.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/cli"
	"github.com/trimtab-dev/trimtab/lint"
)

func main() {
	if lint.IsVet(os.Args[1:]) {
		lint.Vet()
		return
	}
	logf.SetLogger(logr.Discard()) // what clients log says the same as their errors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
