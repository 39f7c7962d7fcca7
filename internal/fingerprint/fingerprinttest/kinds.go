// Package fingerprinttest holds what real clients do to an object that a manager applied, and what
// has to be made of it: [Cases] on [Kinds]. Tests of drift detection and of drift correction share
// them.
package fingerprinttest

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Kind is a kind of object and the places in its manifest that cases change.
type Kind struct {
	// Name is that of the kind.
	Name     string
	manifest string
	// scalar is the path of a value of the manifest that may be deleted. Its default is not ours.
	scalar      []string
	ours, other any
	// unowned is the path of a value that is not in the manifest.
	unowned      []string
	unownedValue any
	// items is the path of a list with keys, of which the manifest has two.
	items     []string
	newItem   map[string]any
	itemField string
	itemOther any
	// atomic is the path of a list that is one value.
	atomic     []string
	atomicItem any
	// wholeMap is the path of a map that is one value.
	wholeMap []string
}

// Kinds returns the kinds of the cases. Gadget is defined by [CRD].
func Kinds() []Kind {
	return []Kind{deployment(), configMap(), service(), secret(), gadget()}
}

// Manifest returns the object to apply.
func (k Kind) Manifest(namespace, name string) *unstructured.Unstructured {
	u, err := decode(k.manifest)
	if err != nil {
		panic(fmt.Sprintf("manifest of %s: %v", k.Name, err))
	}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// with returns the manifest with changes.
func (k Kind) with(namespace, name string, changes ...change) *unstructured.Unstructured {
	u := k.Manifest(namespace, name)
	for _, c := range changes {
		c(u.Object)
	}
	return u
}

// bare returns an object without content.
func (k Kind) bare(namespace, name string) *unstructured.Unstructured {
	full := k.Manifest(namespace, name)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(full.GroupVersionKind())
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func decode(text string) (*unstructured.Unstructured, error) {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(data)
}

// change changes an object in place.
type change func(object map[string]any)

func set(value any, path ...string) change {
	return func(object map[string]any) {
		if err := unstructured.SetNestedField(object, value, path...); err != nil {
			panic(err)
		}
	}
}

func remove(path ...string) change {
	return func(object map[string]any) { unstructured.RemoveNestedField(object, path...) }
}

// list changes the items of a list.
func list(path []string, f func(items []any) []any) change {
	return func(object map[string]any) {
		items, _, err := unstructured.NestedSlice(object, path...)
		if err == nil {
			err = unstructured.SetNestedSlice(object, f(items), path...)
		}
		if err != nil {
			panic(err)
		}
	}
}

func appendItem(item any, path []string) change {
	return list(path, func(items []any) []any { return append(items, item) })
}

func insertItem(item any, path []string) change {
	return list(path, func(items []any) []any { return slices.Insert(items, 0, item) })
}

func reverse(path []string) change {
	return list(path, func(items []any) []any {
		slices.Reverse(items)
		return items
	})
}

func dropLast(path []string) change {
	return list(path, func(items []any) []any { return items[:len(items)-1] })
}

func editFirst(path []string, field string, value any) change {
	return list(path, func(items []any) []any {
		items[0].(map[string]any)[field] = value
		return items
	})
}

func deployment() Kind {
	return Kind{
		Name: "Deployment", manifest: deploymentYAML,
		scalar: []string{"spec", "revisionHistoryLimit"}, ours: int64(5), other: int64(7),
		unowned: []string{"spec", "minReadySeconds"}, unownedValue: int64(3),
		items:   []string{"spec", "template", "spec", "containers"},
		newItem: map[string]any{"name": "sidecar", "image": "example.org/sidecar:1"},
		// The order of variables and containers has a meaning.
		itemField: "image", itemOther: "example.org/web:2",
		atomic:     []string{"spec", "template", "spec", "tolerations"},
		atomicItem: map[string]any{"key": "b", "operator": "Exists"},
		wholeMap:   []string{"spec", "template", "spec", "nodeSelector"},
	}
}

func configMap() Kind {
	return Kind{
		Name: "ConfigMap", manifest: configMapYAML,
		scalar: []string{"data", "a"}, ours: "1", other: "2",
		unowned: []string{"data", "theirs"}, unownedValue: "x",
	}
}

func service() Kind {
	return Kind{
		Name: "Service", manifest: serviceYAML,
		scalar: []string{"spec", "internalTrafficPolicy"}, ours: "Local", other: "Cluster",
		unowned: []string{"spec", "publishNotReadyAddresses"}, unownedValue: true,
		items:     []string{"spec", "ports"},
		newItem:   map[string]any{"name": "theirs", "port": int64(9999), "protocol": "TCP"},
		itemField: "targetPort", itemOther: int64(8081),
		atomic: []string{"spec", "externalIPs"}, atomicItem: "198.51.100.2",
		wholeMap: []string{"spec", "selector"},
	}
}

func secret() Kind {
	return Kind{
		Name: "Secret", manifest: secretYAML,
		scalar: []string{"data", "a"}, ours: "b25l", other: "dHdv",
		unowned: []string{"data", "theirs"}, unownedValue: "eA==",
	}
}

func gadget() Kind {
	return Kind{
		Name: "Gadget", manifest: gadgetYAML,
		scalar: []string{"spec", "size"}, ours: int64(5), other: int64(7),
		unowned: []string{"spec", "note"}, unownedValue: "theirs",
		items:     []string{"spec", "parts"},
		newItem:   map[string]any{"name": "theirs", "count": int64(1)},
		itemField: "count", itemOther: int64(9),
		atomic: []string{"spec", "steps"}, atomicItem: "theirs",
		wholeMap: []string{"spec", "fixed"},
	}
}

const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata:
  labels: {app: web, ours: "1"}
  annotations: {example.org/ours: "1"}
spec:
  replicas: 0
  revisionHistoryLimit: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {disk: ssd}
      tolerations: [{key: a, operator: Exists}]
      volumes: [{name: scratch, emptyDir: {}}]
      containers:
      - name: web
        image: example.org/web:1
        args: [serve, "-v"]
        env: [{name: A, value: "1"}, {name: B, value: $(A)}]
        ports: [{containerPort: 80, protocol: TCP}, {containerPort: 443, protocol: TCP}, {containerPort: 9090, protocol: TCP}]
        resources: {limits: {cpu: 500m}}
        volumeMounts: [{name: scratch, mountPath: /scratch}]
      - name: log
        image: example.org/log:1
`

const configMapYAML = `
apiVersion: v1
kind: ConfigMap
metadata:
  labels: {ours: "1"}
  annotations: {example.org/ours: "1"}
data: {a: "1", b: "1"}
`

const serviceYAML = `
apiVersion: v1
kind: Service
metadata:
  labels: {ours: "1"}
  annotations: {example.org/ours: "1"}
spec:
  internalTrafficPolicy: Local
  externalIPs: [198.51.100.1]
  selector: {app: web}
  ports:
  - {name: http, port: 80, protocol: TCP, targetPort: 8080}
  - {name: metrics, port: 9090, protocol: TCP, targetPort: 9090}
`

const secretYAML = `
apiVersion: v1
kind: Secret
metadata:
  labels: {ours: "1"}
  annotations: {example.org/ours: "1"}
type: Opaque
data: {a: b25l, b: b25l}
`

const gadgetYAML = `
apiVersion: fingerprint.example.org/v1
kind: Gadget
metadata:
  labels: {ours: "1"}
  annotations: {example.org/ours: "1"}
spec:
  size: 5
  mode: auto
  tags: [b, a]
  parts: [{name: one, count: 1}, {name: two, count: 2}]
  steps: [first, second]
  fixed: {a: "1"}
  noneFixed: {}
  open: {}
`

// CRD returns the definition of the kind Gadget: a structural schema with defaults, a status, and
// lists and maps of each sort.
func CRD() *unstructured.Unstructured {
	u, err := decode(crdYAML)
	if err != nil {
		panic(err)
	}
	return u
}

const crdYAML = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.fingerprint.example.org}
spec:
  group: fingerprint.example.org
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 3}
              mode: {type: string, default: auto}
              note: {type: string}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, count: {type: integer}}
              steps: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}
              fixed: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
              noneFixed: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
              open: {type: object, additionalProperties: {type: string}}
          status:
            type: object
            properties: {phase: {type: string}}
`
