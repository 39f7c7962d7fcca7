package component_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/testenv"
)

const everydayDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.$NS.example.org}
spec:
  group: $NS.example.org
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
`

const everydayWidget = `
apiVersion: $NS.example.org/v1
kind: Widget
metadata: {name: one}
spec: {size: 1}
`

// everydayNew is the next version of the definition: another version of the kind, and another field.
var everydayNew = edited(everydayDefinition, "    storage: true", "    storage: false") + //nolint:gochecknoglobals // a manifest
	`  - name: v2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              color: {type: string}
`

const everydayScaler = `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  minReplicas: 1
  maxReplicas: 3
  targetCPUUtilizationPercentage: 80
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}
`

const everydayRoles = `
apiVersion: v1
kind: List
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleList
  items:
  - metadata: {name: one}
    rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
  - metadata: {name: two}
    rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
- apiVersion: v1
  kind: ServiceAccount
  metadata: {name: web}
`

const everydayExported = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: conf
  creationTimestamp: "2020-01-01T00:00:00Z"
  generation: 7
  resourceVersion: "111"
  selfLink: /api/v1/namespaces/x/configmaps/conf
  uid: 7e0c3e5c-0000-0000-0000-000000000000
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf"},"data":{"level":"old"}}
  managedFields:
  - {manager: kubectl, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {}}}
data: {level: debug}
`

const everydayClusterRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: $NS, namespace: $NS}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`

// large is the definition with as many described fields as 400 KB hold.
func large(description string) string {
	var fields strings.Builder
	for i := range 400 {
		fmt.Fprintf(&fields, "              field%d: {type: string, description: %q}\n", i, description+strings.Repeat("x", 1000))
	}
	return everydayDefinition + fields.String()
}

// everydayForms are about the forms in which manifests are written.
func everydayForms() map[string]everyday { //nolint:funlen // a table
	return map[string]everyday{
		"definition of 400 KB": {
			why:   "kubectl apply cannot write it",
			steps: []everyStep{{manifest: large("one")}, {manifest: large("two") + "---" + everydayWidget}},
		},
		"crds of a chart are upgraded": {
			why: "helm upgrade does not look at the folder crds",
			steps: []everyStep{
				{manifest: everydayWidget + "---" + everydayDefinition}, // in the wrong order
				{manifest: edited(everydayWidget, "/v1", "/v2", "size: 1", "size: 1, color: red") + "---" + everydayNew, then: func(b *bench) {
					live := b.now(b.manifests(edited(everydayWidget, "/v1", "/v2"))[0])
					if color, _, _ := unstructured.NestedString(live.Object, "spec", "color"); color != "red" {
						b.t.Errorf("the new field is %q", color)
					}
				}},
			},
		},
		"definition comes later": {
			why: "somebody else installs it",
			steps: []everyStep{
				{manifest: everydayWidget, says: []string{"Widget one", "does not serve", "$NS.example.org/v1", "install the definition first"}, then: func(b *bench) {
					testenv.Install(b.t, b.cfg, b.manifests(everydayDefinition)[0])
				}},
				{manifest: everydayWidget},
			},
		},
		"definition with preserveUnknownFields false": {
			why:   "the API server does not store the field",
			steps: []everyStep{{manifest: edited(everydayDefinition, "scope:", "preserveUnknownFields: false\n  scope:")}},
		},
		"definition with a status": {
			why: "generators of manifests wrote it",
			steps: []everyStep{{
				manifest: everydayDefinition + "status: {acceptedNames: {kind: \"\", plural: \"\"}, conditions: [], storedVersions: []}\n",
			}},
		},
		"unknown field of a custom resource": {
			why: "a misspelt field, which the API server drops",
			steps: []everyStep{
				{manifest: everydayDefinition + "---" + edited(everydayWidget, "size", "siez"), says: []string{"Widget $NS/one", "siez"}},
				{manifest: everydayDefinition + "---" + everydayWidget},
			},
		},
		"version that is no longer served": {
			why: "a manifest is older than the cluster",
			steps: []everyStep{
				{manifest: edited(everydayBudget, "policy/v1", "policy/v1beta1"), says: []string{"PodDisruptionBudget web", "does not serve", "policy/v1beta1", "check apiVersion"}},
				{manifest: everydayBudget},
			},
		},
		"another version of the same kind": {
			why: "autoscaling/v1 becomes autoscaling/v2",
			steps: []everyStep{
				{manifest: everydayScaler},
				{manifest: edited(everydayScaler, "autoscaling/v1", "autoscaling/v2", "targetCPUUtilizationPercentage: 80",
					"metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]")},
			},
		},
		"lists": {
			why:   "a template renders a RoleList, and a tool a List",
			steps: []everyStep{{manifest: everydayRoles}, {manifest: edited(everydayRoles, "verbs: [get]", "verbs: [list]")}},
		},
		"generateName": {
			why: "kubectl create makes a new object each time",
			steps: []everyStep{
				{manifest: edited(everydayConf, "name:", "generateName:"), says: []string{"generateName", "set name"}},
				{manifest: everydayConf},
			},
		},
		"object twice": {
			why: "two subcharts render it",
			steps: []everyStep{
				{manifest: everydayConf + "---" + edited(everydayConf, "debug", "info"), says: []string{"ConfigMap $NS/conf occurs twice", "remove one"}},
				{manifest: everydayConf},
			},
		},
		"exported object": {
			why:   "it was written by kubectl get -o yaml",
			steps: []everyStep{{manifest: everydayExported}, {manifest: edited(everydayExported, "level: debug", "level: info")}},
		},
		"namespace of a cluster-wide object": {
			why:   "charts set it on everything",
			steps: []everyStep{{manifest: everydayClusterRole}, {manifest: edited(everydayClusterRole, "verbs: [get]", "verbs: [list]")}},
		},
	}
}
