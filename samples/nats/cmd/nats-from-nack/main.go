// Command nats-from-nack converts objects of NACK, as kubectl get -o yaml prints them, into objects of
// nats-operator. It reads standard input and writes standard output. Remarks for users go to standard
// error.
package main

import (
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/samples/nats/nack"
)

func main() {
	if err := run(os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "nats-from-nack:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out, remarks io.Writer) error {
	all, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	converted, err := nack.Convert(all)
	if err != nil {
		return err
	}
	for _, r := range converted.Remarks {
		_, _ = fmt.Fprintln(remarks, r) // there is nowhere to report it
	}
	for i, o := range converted.Objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}
