// Command trimtab-demo plays the demo. `trimtab demo` builds and starts it.
package main

import (
	"context"
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
	flag.BoolVar(&o.Once, "once", false, "end after the last step instead of staying up")
	flag.BoolVar(&o.JSON, "json", false, "print one JSON object at the end")
	flag.Parse()
	// Libraries speak to nobody: what matters is a step's own sentence.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() { // whoever started it keeps the other end of the pipe
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	err := demo.Run(ctx, o)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "trimtab demo:", err)
	}
	if err != nil {
		os.Exit(1)
	}
}
