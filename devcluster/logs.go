package devcluster

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"runtime"
	"strings"
	_ "unsafe" // for go:linkname

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// etcdClientLogger is the API server's logger for its connection to etcd. It
// writes to standard error, which is reserved for devcluster's own errors, and
// there is no other way to set it.
//
//go:linkname etcdClientLogger k8s.io/apiserver/pkg/storage/storagebackend/factory.etcd3ClientLogger
var etcdClientLogger *zap.Logger

// openLog redirects the logs of all components to one file and prevents the
// components from ending the process.
func (c *Cluster) openLog(context.Context) error {
	path := c.options.Log
	if path == "" {
		path = c.folder.Join("devcluster.log")
	}
	var err error
	c.log, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w; use a writable file", err)
	}
	c.slog = slog.New(slog.NewTextHandler(c.log, nil))
	log.SetOutput(c.log)
	etcdClientLogger = c.etcdLogger(func(reason string) { c.giveUp("the connection to etcd gave up: " + reason) })
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(c.log))))
	klog.OsExit = func(int) { c.giveUp("a Kubernetes component gave up; " + c.because()) }
	c.onStop(c.log.Close)
	return nil
}

// giveUp is called instead of ending the process. It stops the cluster and ends
// the calling goroutine, which must not continue.
func (c *Cluster) giveUp(reason string) {
	c.fail(errors.New(reason))
	runtime.Goexit()
}

// etcdLogger returns a logger that writes etcd's warnings to the log. It calls
// giveUp, which must not return, for entries after which etcd would panic or end
// the process.
func (c *Cluster) etcdLogger(giveUp func(reason string)) *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	core := zapcore.NewCore(encoder, zapcore.AddSync(c.log), zapcore.WarnLevel)
	hook := lastWords(giveUp)
	return zap.New(core, zap.WithFatalHook(hook), zap.WithPanicHook(hook))
}

// lastWords receives the entries after which etcd does not continue.
type lastWords func(reason string)

// OnWrite passes on the entry's message and error. It does not return.
func (say lastWords) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	said := []string{entry.Message}
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			said = append(said, err.Error())
		}
	}
	say(strings.Join(said, ": "))
}
