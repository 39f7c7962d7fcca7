// Package kubectl writes the commands that are printed for a user to run. They mean the cluster that the user has named and the
// kind that is meant, and a shell takes each word as it is.
package kubectl

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Commands writes commands for one cluster. The zero value is for that of the user's kubeconfig.
type Commands struct {
	// Flags name the cluster and the identity, such as --context=prod. They end each command.
	Flags []string
	// Mapper knows the kinds of the cluster. Nil: each kind is written with its group.
	Mapper meta.RESTMapper
}

// Line returns the command kubectl with words, in a namespace unless that is empty.
func (c Commands) Line(namespace string, words ...string) string {
	all := append([]string{"kubectl"}, words...)
	if namespace != "" {
		all = append(all, "-n", namespace)
	}
	all = append(all, c.Flags...)
	for i, word := range all {
		all[i] = Quote(word)
	}
	return strings.Join(all, " ")
}

// Kind returns the name of a kind for kubectl: the kind, or its resource with the group if several kinds have that name.
func (c Commands) Kind(kind schema.GroupVersionKind) string {
	word := strings.ToLower(kind.Kind)
	if kind.Group == "" { // kubectl prefers the kinds of Kubernetes
		return word
	}
	if c.Mapper == nil {
		return word + "." + kind.Group
	}
	found, err := c.Mapper.KindsFor(schema.GroupVersionResource{Resource: word})
	only := err == nil && len(found) > 0
	for _, other := range found {
		only = only && other.GroupKind() == kind.GroupKind()
	}
	if only {
		return word
	}
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return word + "." + kind.Group
	}
	return mapping.Resource.GroupResource().String()
}

// Quote returns a text as one word for a shell.
func Quote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=@+%"
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
