package model

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Operators returns the operators that look after the kinds of the cluster, as their leases show them.
func (c *Cluster) Operators(ctx context.Context) (all []Operator) {
	for _, kind := range c.Kinds() {
		for _, op := range c.operatorsOf(ctx, Ref{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}) {
			at := slices.IndexFunc(all, func(o Operator) bool { return o.Namespace == op.Namespace && o.Name == op.Name })
			if at < 0 {
				at, all = len(all), append(all, op)
			}
			all[at].Kinds = append(all[at].Kinds, kind.Kind)
		}
	}
	slices.SortFunc(all, func(a, b Operator) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all
}

// debugPort is that of an operator's debug address unless its flags say otherwise.
const debugPort = "8082"

// Reach returns the command that makes the debug address of an operator's leader reachable on this machine, and the port. If there is
// none, it says why.
func (c *Cluster) Reach(ctx context.Context, op Operator) (command, port string, err error) {
	if !op.Leads {
		return "", "", fmt.Errorf("operator %s/%s does not run", op.Namespace, op.Name)
	}
	pods, err := c.operatorPods(ctx, op.Namespace, op.Name, op.Holder)
	if err != nil {
		return "", "", err
	}
	leader := podOf(op.Holder)
	at := slices.IndexFunc(pods, func(p unstructured.Unstructured) bool { return p.GetName() == leader })
	if at < 0 {
		return "", "", fmt.Errorf("its leader %s is no Pod of namespace %s; use the debug-address that it logs when it starts, on the machine that it runs on", op.Holder, op.Namespace)
	}
	if port = debugPortOf(&pods[at]); port == "" {
		return "", "", fmt.Errorf("it runs with --debug-address 0; start it without that flag")
	}
	return c.commands.Line(op.Namespace, "port-forward", "pod/"+leader, port+":"+port), port, nil
}

// podOf returns the Pod of the process that holds a lease: controller-runtime puts a UID behind the name.
func podOf(holder string) string {
	if at := strings.LastIndexByte(holder, '_'); at > 0 {
		return holder[:at]
	}
	return holder
}

// debugPortOf returns the port of the debug address of the operator in a Pod; empty if it has none.
func debugPortOf(pod *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	for _, item := range containers {
		container, _ := item.(map[string]any)
		command, _, _ := unstructured.NestedStringSlice(container, "command")
		args, _, _ := unstructured.NestedStringSlice(container, "args")
		words := append(command, args...)
		for i, word := range words {
			address, is := strings.CutPrefix(word, "--debug-address=")
			if word == "--debug-address" && i+1 < len(words) {
				address, is = words[i+1], true
			}
			if !is {
				continue
			}
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return "" // 0 turns it off
			}
			return port
		}
	}
	return debugPort
}

// Line returns a command of kubectl for the whole cluster.
func (c *Cluster) Line(words ...string) string { return c.commands.Line("", words...) }
