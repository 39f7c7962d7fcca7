package actor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// node is one object.
type node struct {
	key  string
	kind apiserver.Kind
	rev  int64
	data []byte
	metav1.ObjectMeta
}

func (n *node) String() string {
	name := n.Name
	if n.Namespace != "" {
		name = n.Namespace + "/" + n.Name
	}
	return n.kind.Resource.GroupResource().String() + " " + name
}

func (n *node) deleting() bool { return n.DeletionTimestamp != nil }

func (n *node) isNamespace() bool { return n.kind.Prefix == "/namespaces" }

func (n *node) has(finalizer string) bool { return slices.Contains(n.Finalizers, finalizer) }

// deletingDependents tells whether n waits for its dependents to go.
func (n *node) deletingDependents() bool {
	return n.deleting() && n.has(metav1.FinalizerDeleteDependents)
}

// graph knows the metadata of all objects of a cluster. It follows the cluster's history, so that
// each revision is decoded once.
type graph struct {
	server     *apiserver.Server
	db         *store.DB
	rev        int64
	nodes      map[string]*node
	restless   map[string]*node               // those that have owners or are being deleted
	dependents map[types.UID]map[string]*node // by the owner they name
	builtin    map[schema.GroupVersionKind]apiserver.Kind
}

func newGraph(server *apiserver.Server, db *store.DB) *graph { return &graph{server: server, db: db} }

// update takes in what changed since the last time and tells whether anything did.
func (g *graph) update() bool {
	if g.nodes == nil {
		g.nodes, g.restless, g.dependents = map[string]*node{}, map[string]*node{}, map[types.UID]map[string]*node{}
		g.builtin = map[schema.GroupVersionKind]apiserver.Kind{}
		g.rev = g.db.Revision() // what changes meanwhile is taken in twice
		for _, s := range g.db.Rows() {
			g.set(s.Key, s.Data, s.Rev)
		}
		return true
	}
	changes := g.db.Since(g.rev)
	for _, c := range changes {
		g.set(c.Key, c.After, c.Rev)
		g.rev = c.Rev
	}
	return len(changes) > 0
}

func (g *graph) set(key string, data []byte, rev int64) {
	if old, ok := g.nodes[key]; ok {
		delete(g.nodes, key)
		delete(g.restless, key)
		for _, ref := range old.OwnerReferences {
			delete(g.dependents[ref.UID], key)
		}
	}
	kind, ok := g.server.KindOf(g.db, key)
	if data == nil || !ok {
		return
	}
	n := &node{key: key, kind: kind, rev: rev, data: data}
	if given, ok := g.server.Given()[key]; ok && rev == store.First {
		n.ObjectMeta = given // decoding a CRD takes longer than all else
	} else {
		n.ObjectMeta = metadata(key, data)
	}
	g.nodes[key] = n
	if n.deleting() || len(n.OwnerReferences) > 0 {
		g.restless[key] = n
	}
	for _, ref := range n.OwnerReferences {
		if g.dependents[ref.UID] == nil {
			g.dependents[ref.UID] = map[string]*node{}
		}
		g.dependents[ref.UID][key] = n
	}
}

// protobufMagic begins what is stored in the encoding of the built-in kinds.
const protobufMagic = "k8s\x00"

// metadata decodes the metadata alone. What is stored was written by a registry, so it can be
// read.
func metadata(key string, data []byte) metav1.ObjectMeta {
	var o metav1.PartialObjectMetadata
	var err error
	if body, ok := bytes.CutPrefix(data, []byte(protobufMagic)); ok {
		var envelope runtime.Unknown
		if err = envelope.Unmarshal(body); err == nil {
			err = o.Unmarshal(envelope.Raw) // every kind has its metadata in field 1
		}
	} else {
		err = json.Unmarshal(data, &o)
	}
	if err != nil {
		panic(fmt.Sprintf("kubesim: %s cannot be read: %v", key, err))
	}
	return o.ObjectMeta
}

// kindNamed returns a kind that the cluster serves. Built-in ones stay for ever.
func (g *graph) kindNamed(name schema.GroupVersionKind) (apiserver.Kind, bool) {
	if k, ok := g.builtin[name]; ok {
		return k, true
	}
	k, ok := g.server.KindNamed(g.db, name)
	if ok && !k.Custom {
		g.builtin[name] = k
	}
	return k, ok
}

func (g *graph) sorted() iter.Seq[*node] { return inOrder(g.nodes) }

// dependentsOf yields the objects that name n as an owner, wherever they are.
func (g *graph) dependentsOf(n *node) iter.Seq[*node] { return inOrder(g.dependents[n.UID]) }

func inOrder(nodes map[string]*node) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for _, key := range slices.Sorted(maps.Keys(nodes)) {
			if !yield(nodes[key]) {
				return
			}
		}
	}
}
