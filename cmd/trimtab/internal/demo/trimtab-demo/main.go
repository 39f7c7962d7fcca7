// Command trimtab-demo runs the demo. `trimtab demo` builds and starts it.
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
	flag.StringVar(&o.Folder, "folder", "", "folder for the demo's files, removed at the end")
	flag.BoolVar(&o.Once, "once", false, "end after the last step")
	flag.BoolVar(&o.JSON, "json", false, "print one JSON object at the end")
	flag.Parse()
	// What libraries log would only garble the output of the steps.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Without a reader, the next line must not kill the process: the demo ends in order.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() { // the parent holds the other end of the pipe for as long as it lives
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	err := demo.Run(ctx, o)
	if err != nil && !errors.Is(err, context.Cause(ctx)) { // an interruption needs no message
		fmt.Fprintln(os.Stderr, "trimtab demo:", err)
	}
	if err != nil {
		os.Exit(1)
	}
}
