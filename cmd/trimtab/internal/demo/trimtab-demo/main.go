// Command trimtab-demo plays the demo. `trimtab demo` builds and starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/demo"
)

func main() {
	o := demo.Options{Out: os.Stdout, Err: os.Stderr}
	flag.StringVar(&o.Operator, "operator", "", "binary of the operator to show")
	flag.StringVar(&o.Folder, "folder", "", "folder for the demo's files, removed in the end")
	flag.BoolVar(&o.Once, "once", false, "end after the last step instead of staying up")
	flag.BoolVar(&o.JSON, "json", false, "print one JSON object at the end")
	flag.Parse()
	// Libraries speak to nobody: what matters is a step's own sentence.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A reader that goes away ends the demo in order, not the process at its next line.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() { // whoever started it keeps the other end of the pipe
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	err := demo.Run(ctx, o)
	if err != nil && !errors.Is(err, context.Cause(ctx)) { // who interrupts knows
		fmt.Fprintln(os.Stderr, "trimtab demo:", err)
	}
	if err != nil {
		os.Exit(1)
	}
}
