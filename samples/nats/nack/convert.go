// Package nack converts objects of NACK, the JetStream controller of the NATS project, into objects of
// this operator. Start with [Convert]. cmd/nats-from-nack is the command.
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

// Group is the API group of NACK.
const Group = "jetstream.nats.io"

// Conversion is the result of a conversion.
type Conversion struct {
	// Objects are objects of this operator, in the order in which to apply them. Each takes over
	// what NACK created.
	Objects []*unstructured.Unstructured
	// Remarks tell users what has no counterpart and what they have to do.
	Remarks []string
}

// Convert reads objects as kubectl get -o yaml prints them, as a list or as several documents. It omits
// values that mean nothing in NACK (an empty text or list, 0, false, and -1 for no limit): NACK's schema
// sets them everywhere, and omitted fields are not managed here.
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
	// In this order no consumer has to wait for its stream.
	slices.SortStableFunc(c.out.Objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(slices.Index(order, a.GetKind()), slices.Index(order, b.GetKind()))
	})
	return c.out, nil
}

// order is the order of kinds in the output.
var order = []string{"Stream", "KeyValue", "Consumer"} //nolint:gochecknoglobals // a constant table

// specs are the kinds that have a counterpart, with the spec of the counterpart.
var specs = map[string]reflect.Type{ //nolint:gochecknoglobals // a constant table
	"Stream":   reflect.TypeFor[v1alpha1.StreamSpec](),
	"KeyValue": reflect.TypeFor[v1alpha1.KeyValueSpec](),
	"Consumer": reflect.TypeFor[v1alpha1.ConsumerSpec](),
}

type key struct{ namespace, name string }

// converter converts objects one by one.
type converter struct {
	// streams maps the names of streams to the names of their objects.
	streams map[key]string
	out     Conversion
}

// read parses the input.
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
		c.remark(o, "not an object of NACK; omitted")
		return
	case o.GetDeletionTimestamp() != nil:
		c.remark(o, "is being deleted; omitted")
		return
	case o.GetKind() == "Account":
		c.remark(o, "has no counterpart; servers and credentials are flags of the operator")
		return
	case !known:
		c.remark(o, "has no counterpart; what it created stays in NATS")
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

// annotations returns the user's annotations, and those that replace fields of NACK.
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

// connection removes the fields that say how NACK connects to NATS.
func (c *converter) connection(o *unstructured.Unstructured, spec map[string]any) {
	var said []string
	for _, field := range []string{"account", "creds", "jsDomain", "nkey", "servers", "tls", "tlsFirst"} {
		if stated(field, spec[field]) != nil {
			said = append(said, field)
		}
		delete(spec, field)
	}
	if len(said) > 0 {
		c.remark(o, "%s: these are flags of the operator, the same for all objects", strings.Join(said, ", "))
	}
}

// unknown removes fields that have no counterpart.
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
		c.remark(o, "%s: not supported; omitted, and kept in NATS as it is", strings.Join(lost, ", "))
	}
}
