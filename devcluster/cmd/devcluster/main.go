// Command devcluster runs a Kubernetes control plane until it is asked to stop.
//
// When the cluster is ready, it prints one line of JSON on standard output:
//
//	{"ready":true,"url":"https://127.0.0.1:40813","kubeconfig":"…","version":"v1.37.1","pid":4711,"seconds":2.9,"data":"…"}
//
// It stops on SIGTERM and SIGINT. With -with-parent it also stops when standard
// input ends, as it does when the parent process ends, however that ends. An
// error is printed as one line on standard error, and the exit code is then 1.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/trimtab-dev/trimtab/devcluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "devcluster:", oneLine(err))
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, withParent, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if withParent {
		ctx = untilEOF(ctx, stdin)
	}
	cluster, err := devcluster.Start(ctx, o)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // asked to stop while starting; Start has cleaned up
	}
	if err != nil {
		return err
	}
	if err := json.NewEncoder(stdout).Encode(cluster.Info()); err != nil {
		return errors.Join(fmt.Errorf("print the ready line: %w", err), cluster.Stop())
	}
	if o.Data != "" { // one that is kept, and so runs for long
		debug.FreeOSMemory() // starting leaves about 80 MB of garbage
	}
	return cluster.Wait()
}

func parse(args []string, stderr io.Writer) (o devcluster.Options, withParent bool, err error) {
	flags := flag.NewFlagSet("devcluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Data, "data", "", "`folder` that keeps the cluster across restarts (default: a temporary folder)")
	flags.IntVar(&o.Port, "port", 0, "`port` of the API server on 127.0.0.1 (default: the port stored in the data folder, or a free one)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "`file` for the administrator's kubeconfig (default: \"kubeconfig\" in the data folder)")
	flags.StringVar(&o.AuditLog, "audit-log", "", "`file` that gets one JSON line for each API request (default: none)")
	flags.StringVar(&o.Log, "log", "", "`file` for the components' logs (default: \"devcluster.log\" in the data folder)")
	nodes := flags.Int("nodes", 1, "`number` of simulated nodes; with 0 or -1 there are none, nothing is simulated, and pods stay Pending")
	flags.BoolVar(&withParent, "with-parent", false, "stop when standard input ends")
	if err := flags.Parse(args); err != nil {
		return o, false, err
	}
	if flags.NArg() > 0 {
		return o, false, fmt.Errorf("unexpected argument %q; see devcluster -help", flags.Arg(0))
	}
	if *nodes < -1 {
		return o, false, fmt.Errorf("-nodes %d: use -1 for none, or a positive number", *nodes)
	}
	o.Nodes = *nodes
	if o.Nodes == 0 {
		o.Nodes = -1
	}
	return o, withParent, nil
}

// untilEOF returns a context that is canceled when r ends.
func untilEOF(ctx context.Context, r io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, r) // an error counts as the end
	}()
	return ctx
}

func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}
