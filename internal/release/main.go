// Command release makes the files of a release in a folder. It publishes nothing.
//
//	go run ./internal/release -version v0.1.0
//
// It builds what is committed, with the commands that a user would run: the modules are packed as a module proxy serves them, and
// each binary is made by go install -trimpath PROGRAM@VERSION. So everybody can make the same bytes, and the binaries know their
// version and the modules that they consist of.
//
// For each program and platform the folder contains an archive, with the licenses of all that is linked, and a list of the
// modules in it (CycloneDX). SHA256SUMS has the digests of all files, and notes.md what the changelog says.
//
// trimtab knows the digests of the control planes by internal/controlplane/released.txt, which is part of its source and is
// written here. They are built first; the commit that gets the tag has to contain that file.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, log io.Writer) error {
	r := release{log: log}
	var platforms string
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&r.version, "version", "", "the version, as in v0.1.0")
	flags.StringVar(&r.repository, "repository", ".", "the root of the repository")
	flags.StringVar(&r.out, "o", "dist", "the folder for the files")
	flags.StringVar(&platforms, "platforms", "", "build for these alone, as in "+runtime.GOOS+"/"+runtime.GOARCH+",windows/amd64")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if platforms != "" {
		r.platforms = strings.Split(platforms, ",")
	}
	return r.make(ctx)
}
