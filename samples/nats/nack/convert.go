// Package nack turns objects of NACK, NATS's own JetStream controller, into objects of this
// operator, for those who move. Begin with [Convert]; cmd/nats-from-nack is its command.
package nack

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// Group is that of NACK's kinds.
const Group = "jetstream.nats.io"

// Conversion is what came of NACK's objects.
type Conversion struct {
	// Objects are those of this operator, in the order in which to apply them. Each takes
	// over what NACK made.
	Objects []*unstructured.Unstructured
	// Remarks are what people must know or do: what has no counterpart here.
	Remarks []string
}

// Convert reads objects as kubectl get -o yaml prints them, one list or several documents.
// What asks for nothing (an empty text or list, 0, false, -1 where that means no limit) is left
// out: NACK's schema writes it everywhere, and what is left out here stays as it is in NATS.
func Convert(in []byte) (Conversion, error) {
	theirs, err := read(in)
	if err != nil {
		return Conversion{}, err
	}
	c := converter{streams: map[key]string{}}
	for _, o := range theirs {
		if name, _, _ := unstructured.NestedString(o.Object, "spec", "name"); o.GetKind() == "Stream" && name != "" {
			c.streams[key{o.GetNamespace(), name}] = o.GetName()
		}
	}
	for _, o := range theirs {
		c.object(o)
	}
	// A consumer waits for its stream anyway, but needs not.
	slices.SortStableFunc(c.out.Objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(slices.Index(order, a.GetKind()), slices.Index(order, b.GetKind()))
	})
	return c.out, nil
}

// order is that of kinds in the output.
var order = []string{"Stream", "KeyValue", "Consumer"} //nolint:gochecknoglobals // a constant table

// specs are the kinds that have a counterpart, with its spec.
var specs = map[string]reflect.Type{ //nolint:gochecknoglobals // a constant table
	"Stream":   reflect.TypeFor[v1alpha1.StreamSpec](),
	"KeyValue": reflect.TypeFor[v1alpha1.KeyValueSpec](),
	"Consumer": reflect.TypeFor[v1alpha1.ConsumerSpec](),
}

type key struct{ namespace, name string }

// converter converts one object after the other.
type converter struct {
	// streams are the objects of streams, by the streams' names.
	streams map[key]string
	out     Conversion
}

// read takes the input apart.
func read(in []byte) ([]*unstructured.Unstructured, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(in)))
	var out []*unstructured.Unstructured
	for {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		if !o.IsList() {
			if len(o.Object) > 0 {
				out = append(out, o)
			}
			continue
		}
		err = o.EachListItem(func(item runtime.Object) error {
			if u, ok := item.(*unstructured.Unstructured); ok {
				out = append(out, u)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read a list: %w", err)
		}
	}
}

func (c *converter) remark(o *unstructured.Unstructured, format string, args ...any) {
	who := o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
	c.out.Remarks = append(c.out.Remarks, who+": "+fmt.Sprintf(format, args...))
}

// object converts one object.
func (c *converter) object(o *unstructured.Unstructured) {
	counterpart, known := specs[o.GetKind()]
	switch {
	case o.GroupVersionKind().Group != Group:
		c.remark(o, "is no object of NACK; left out")
		return
	case o.GetDeletionTimestamp() != nil:
		c.remark(o, "is being deleted; left out")
		return
	case o.GetKind() == "Account":
		c.remark(o, "there is no such kind here; servers and credentials are flags of the operator")
		return
	case !known:
		c.remark(o, "there is no such kind here; what it made stays in NATS")
		return
	}
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	if spec == nil {
		spec = map[string]any{}
	}
	ours := &unstructured.Unstructured{Object: map[string]any{}}
	ours.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(o.GetKind()))
	ours.SetNamespace(o.GetNamespace())
	ours.SetName(o.GetName())
	ours.SetLabels(o.GetLabels())
	ours.SetAnnotations(c.annotations(o, spec))
	c.connection(o, spec)
	c.fields(o, spec)
	c.unknown(o, spec, counterpart)
	ours.Object["spec"] = spec
	c.out.Objects = append(c.out.Objects, ours)
}

// annotations are those of people, and what NACK has fields for.
func (c *converter) annotations(o *unstructured.Unstructured, spec map[string]any) map[string]string {
	out := maps.Clone(o.GetAnnotations())
	if out == nil {
		out = map[string]string{}
	}
	delete(out, "kubectl.kubernetes.io/last-applied-configuration")
	out[api.AnnotationAdoption] = "always"
	if spec["preventDelete"] == true {
		out[api.AnnotationDeletion] = "orphan"
	}
	if spec["preventUpdate"] == true {
		out[api.AnnotationAccess] = "cd"
	}
	delete(spec, "preventDelete")
	delete(spec, "preventUpdate")
	return out
}

// connection takes out how NACK reaches NATS.
func (c *converter) connection(o *unstructured.Unstructured, spec map[string]any) {
	var said []string
	for _, field := range []string{"account", "creds", "jsDomain", "nkey", "servers", "tls", "tlsFirst"} {
		if stated(field, spec[field]) != nil {
			said = append(said, field)
		}
		delete(spec, field)
	}
	if len(said) > 0 {
		c.remark(o, "%s: flags of the operator here, the same for all objects", strings.Join(said, ", "))
	}
}

// unknown takes out what has no counterpart.
func (c *converter) unknown(o *unstructured.Unstructured, spec map[string]any, counterpart reflect.Type) {
	var known, lost []string
	for f := range counterpart.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known = append(known, name)
	}
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		if !slices.Contains(known, field) {
			lost = append(lost, field)
			delete(spec, field)
		}
	}
	if len(lost) > 0 {
		c.remark(o, "%s: not known here; left out, and left in NATS as it is", strings.Join(lost, ", "))
	}
}
