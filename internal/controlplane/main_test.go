package controlplane

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// envPretend makes this test binary behave as a devcluster, in the way that it names.
const envPretend = "TRIMTAB_TEST_PRETEND"

func TestMain(m *testing.M) {
	switch how := os.Getenv(envPretend); how {
	case "":
		goleak.VerifyTestMain(m)
	case "parent":
		parent()
	default:
		os.Exit(pretend(how))
	}
}

// pretend keeps devcluster's side of the contract, without a cluster.
func pretend(how string) int {
	data := flag.String("data", "", "")
	kubeconfig := flag.String("kubeconfig", "", "")
	flag.Bool("with-parent", false, "")
	flag.Parse()
	switch how {
	case "fails":
		fmt.Fprintln(os.Stderr, "some component logs\ndevcluster: port 7 is taken\nand another one")
		return 1
	case "hangs":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "silent":
		return 0
	case "babbles":
		fmt.Println("usage: something else")
		return 0
	}
	temporary := *data == ""
	if temporary {
		*data, _ = os.MkdirTemp("", "pretended-*")
	}
	if *kubeconfig == "" {
		*kubeconfig = filepath.Join(*data, "kubeconfig")
	}
	const text = `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:7"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	_ = os.WriteFile(*kubeconfig, []byte(text), 0o600)
	line, _ := json.Marshal(map[string]any{"ready": true, "url": "https://127.0.0.1:7", "kubeconfig": *kubeconfig, "version": "v1.37.1", "pid": os.Getpid(), "seconds": 0.1, "data": *data})
	fmt.Println(string(line))
	_, _ = io.Copy(io.Discard, os.Stdin)
	if temporary && how != "untidy" {
		_ = os.RemoveAll(*data)
	}
	if how == "dies" {
		fmt.Fprintln(os.Stderr, "devcluster: etcd is gone")
		return 1
	}
	return 0
}

// parent starts a pretended devcluster, says where, and waits to be killed.
func parent() {
	os.Setenv(envPretend, "works")
	c, err := Start(context.Background(), Options{Binary: os.Args[0]})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.PID, c.Data)
	select {}
}
