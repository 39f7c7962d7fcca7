package desired

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// ownedField is a field that a controller, or the API server, writes by design. It is left to that
// controller without an annotation.
type ownedField struct {
	kinds []schema.GroupKind
	// path is where the field is. [each] stands for all items of a list.
	path []string
	// keys are what names the items of that list.
	keys []string
	// unless reports whether a value of the manifest is meant, so that the operator enforces it. Nil means
	// [given].
	unless func(manifest map[string]any, value any) bool
	// kept: the API server keeps the value of an update that leaves the field out.
	kept bool
}

// each is a part of a path: all items of a list.
const each = "*"

// ownedFields are the fields that Kubernetes itself, or what everybody installs beside it, writes by
// design. The replicas of what an autoscaler scales are in autoscaled. docs/components.md has the same
// table for users.
func ownedFields() []ownedField {
	services := []schema.GroupKind{{Kind: "Service"}}
	return []ownedField{
		{
			kinds: []schema.GroupKind{{Group: groupRBAC, Kind: "ClusterRole"}}, path: []string{"rules"},
			unless: func(manifest map[string]any, _ any) bool { return manifest["aggregationRule"] == nil },
		},
		{
			kinds: []schema.GroupKind{
				{Group: groupAdmission, Kind: "MutatingWebhookConfiguration"}, {Group: groupAdmission, Kind: "ValidatingWebhookConfiguration"},
			},
			path: []string{"webhooks", each, "clientConfig", "caBundle"}, keys: []string{"name"},
		},
		{
			kinds: []schema.GroupKind{{Group: groupExtensions, Kind: "CustomResourceDefinition"}},
			path:  []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"},
		},
		{
			kinds: []schema.GroupKind{{Group: groupAggregator, Kind: "APIService"}}, path: []string{"spec", "caBundle"},
			unless: func(manifest map[string]any, value any) bool {
				spec, _ := manifest["spec"].(map[string]any)
				return given(manifest, value) || spec["insecureSkipTLSVerify"] == true || spec["service"] == nil
			},
		},
		{kinds: services, path: []string{"spec", "clusterIP"}, kept: true},
		{kinds: services, path: []string{"spec", "clusterIPs"}, kept: true},
		{kinds: services, path: []string{"spec", "ports", each, "nodePort"}, keys: []string{"port", "protocol"}, kept: true},
		{kinds: services, path: []string{"spec", "healthCheckNodePort"}, kept: true},
		{kinds: []schema.GroupKind{{Kind: "PersistentVolumeClaim"}}, path: []string{"spec", "volumeName"}},
	}
}

// given reports whether a manifest has a value: no empty one, and no empty certificate, which old
// manifests write as Cg==.
func given(_ map[string]any, value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case string:
		plain, err := base64.StdEncoding.DecodeString(v)
		return v != "" && (err != nil || strings.TrimSpace(string(plain)) != "")
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return item != nil && item != "" })
	}
	return fmt.Sprint(value) != "0"
}

// yield takes out of the manifest what is left to the controllers that own it.
func (d *draft) yield() {
	for _, f := range ownedFields() {
		if !slices.Contains(f.kinds, d.kind) {
			continue
		}
		unless := f.unless
		if unless == nil {
			unless = given
		}
		f.find(d.Manifest.Object, f.path, nil, func(parent map[string]any, name string, path fingerprint.Path) {
			value, found := parent[name]
			switch {
			case unless(d.Manifest.Object, value):
			case found:
				delete(parent, name)
				d.Ignored = append(d.Ignored, path)
			case !f.kept:
				d.Left = append(d.Left, path)
			}
		})
	}
}

// find calls do for each place where a manifest has the field, or could have it.
func (f ownedField) find(value any, rest []string, at fingerprint.Path, do func(parent map[string]any, name string, path fingerprint.Path)) {
	switch value := value.(type) {
	case map[string]any:
		path := append(slices.Clip(at), "f:"+rest[0])
		if len(rest) == 1 {
			do(value, rest[0], path)
			return
		}
		f.find(value[rest[0]], rest[1:], path, do)
	case []any:
		for _, item := range value {
			if fields, ok := item.(map[string]any); ok && rest[0] == each {
				f.find(fields, rest[1:], append(slices.Clip(at), f.element(fields)), do)
			}
		}
	}
}

// element names an item of a list as managedFields does.
func (f ownedField) element(item map[string]any) string {
	key := map[string]any{}
	for _, name := range f.keys {
		key[name] = item[name]
	}
	if slices.Contains(f.keys, "protocol") && key["protocol"] == nil {
		key["protocol"] = "TCP"
	}
	data, err := json.Marshal(key)
	if err != nil {
		panic("a manifest that was read from JSON is not JSON: " + err.Error())
	}
	return "k:" + string(data)
}

// replicas is the field that an autoscaler writes.
func replicas() fingerprint.Path { return fingerprint.Path{"f:spec", "f:replicas"} }

// isAutoscaler reports whether objects of a kind name in spec.scaleTargetRef what they scale: Kubernetes'
// own, and that of KEDA, which makes the former of it.
func isAutoscaler(k schema.GroupKind) bool {
	return k == schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"} || k == schema.GroupKind{Group: "keda.sh", Kind: "ScaledObject"}
}

// IsScalable reports whether objects of a kind have replicas that autoscalers usually scale.
func IsScalable(k schema.GroupKind) bool {
	return k.Group == "apps" && slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet"}, k.Kind)
}

// autoscaled leaves the replicas of what autoscalers of the set scale to them. A new object gets those of
// its manifest.
func (s *set) autoscaled() {
	for _, scaler := range s.order {
		if !isAutoscaler(scaler.kind) {
			continue
		}
		of := func(field string) string { return scaler.text("spec", "scaleTargetRef", field) }
		version, kind := of("apiVersion"), of("kind")
		if scaler.kind.Group == "keda.sh" {
			version, kind = cmp.Or(version, "apps/v1"), cmp.Or(kind, "Deployment")
		}
		target := schema.FromAPIVersionAndKind(version, kind)
		key := api.InventoryItem{Group: target.Group, Kind: target.Kind, Namespace: scaler.Item.Namespace, Name: of("name")}.Key()
		if target := s.byKey[key]; target != nil {
			target.yieldReplicas()
		}
	}
}

// twin returns the digest that an object has if an autoscaler that is not of the set scales it. It is empty if
// its replicas do not depend on that. Where a replacement would set replicas that the manifest does not have, it
// is the digest itself.
func (s *set) twin(d *draft) string {
	is := func(p fingerprint.Path) bool { return slices.Equal(p, replicas()) }
	spec, _ := d.Manifest.Object["spec"].(map[string]any)
	value, found := spec["replicas"].(int64)
	switch {
	case d.Item.Digest == once, slices.ContainsFunc(d.Ignored, is), slices.ContainsFunc(d.Left, is):
		return ""
	case !found && d.Item.UpdatePolicy == api.UpdatePolicyReplace && IsScalable(d.kind) && spec["replicas"] == nil:
		return d.Item.Digest
	case !found:
		return ""
	}
	delete(spec, "replicas")
	defer func() { spec["replicas"] = value }()
	return digest(d.Manifest.Object, d.Item.ReconcilePolicy, s.Generation)
}

// Autoscaled returns an object whose replicas are left to an autoscaler. Name is the operator's.
func (o Object) Autoscaled(name string) Object {
	if o.Twin == o.Item.Digest {
		o.Left = append(slices.Clip(o.Left), replicas())
		return o
	}
	o.Item.Digest, o.Twin = o.Twin, o.Item.Digest
	o.Ignored = append(slices.Clip(o.Ignored), replicas())
	if o.Manifest == nil {
		return o
	}
	with := func(m *unstructured.Unstructured) *unstructured.Unstructured {
		m = m.DeepCopy()
		annotations := m.GetAnnotations()
		annotations[DigestKey(name)] = o.Item.Digest
		m.SetAnnotations(annotations)
		return m
	}
	if o.Initial == nil {
		o.Initial = o.Manifest
	}
	o.Initial, o.Manifest = with(o.Initial), with(o.Manifest)
	fingerprint.Remove(o.Manifest.Object, replicas())
	return o
}

// yieldReplicas leaves the replicas to an autoscaler.
func (d *draft) yieldReplicas() {
	if d.value("spec", "replicas") == nil {
		d.Left = append(d.Left, replicas())
	} else if d.Ignored = append(d.Ignored, replicas()); d.Initial == nil {
		d.Initial = d.Manifest.DeepCopy()
	}
	fingerprint.Remove(d.Manifest.Object, replicas())
}
