package desired

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/graph"
)

// connect finds what each object needs. Explicit edges, and those without which an object cannot
// exist, must agree with the orders. The others give way: to the orders, and to explicit edges.
func (s *set) connect() {
	for _, d := range s.all {
		s.explicit(d)
	}
	for _, d := range s.all {
		s.require(d, s.definitionOf(d), classTypes, "which defines its kind")
		s.require(d, s.byKey["/Namespace//"+d.Item.Namespace], classNamespaces, "its namespace")
	}
	s.accounts()
	s.backends()
}

// checkCycles reports objects that need each other. There is an explicit edge in each cycle: no implicit one
// is added that would close it.
func (s *set) checkCycles() {
	nodes := make([]graph.Node, len(s.order))
	for i, d := range s.order {
		nodes[i] = graph.Node{Key: graph.Key(d.Item.Key()), Wanted: true}
		for need := range d.needs {
			nodes[i].Needs = append(nodes[i].Needs, graph.Key(need.Item.Key()))
		}
	}
	for _, cycle := range graph.Cycles(nodes) {
		titles := make([]string, len(cycle))
		for i, key := range cycle {
			titles[i] = s.byKey[string(key)].title()
		}
		s.add("these objects depend on each other: %s; remove one of the annotations %s/%s", strings.Join(titles, " → "), s.Name, dependsOn)
	}
}

// explicit adds the edges of the annotation depends-on.
func (s *set) explicit(d *draft) {
	for _, ref := range d.dependsOn {
		switch need := s.resolve(d, ref); need {
		case nil:
		case d:
			s.add("%s: annotation %s/%s names the object itself; remove it", d.title(), s.Name, dependsOn)
		default:
			d.needs[need] = true
			s.agree(d, need, "on which it depends")
		}
	}
}

// resolve returns the object that a reference names: "<group>/<Kind>/<namespace>/<name>", or
// "<Kind>/<name>" for one in the same namespace or in none.
func (s *set) resolve(d *draft, ref string) *draft {
	parts := strings.Split(ref, "/")
	var found []*draft
	switch len(parts) {
	case 4:
		if exact := s.byKey[ref]; exact != nil {
			return exact
		}
		found = s.named(schema.GroupKind{Group: parts[0], Kind: parts[1]}, parts[3], d.Item.Namespace)
		if parts[2] != "" {
			found = nil
		}
	case 2:
		for _, kind := range s.kinds[parts[0]] {
			found = append(found, s.named(kind, parts[1], d.Item.Namespace)...)
		}
	default:
		s.add("%s: annotation %s/%s names %q; it must be <group>/<Kind>/<namespace>/<name>, or <Kind>/<name> for an object in the same namespace",
			d.title(), s.Name, dependsOn, ref)
		return nil
	}
	switch len(found) {
	case 1:
		return found[0]
	case 0:
		s.add("%s: annotation %s/%s names %q, which is not in the set; correct it, or add the object", d.title(), s.Name, dependsOn, ref)
	default:
		var keys []string
		for _, f := range found {
			keys = append(keys, f.Item.Key())
		}
		slices.Sort(keys)
		s.add("%s: annotation %s/%s names %q, which is ambiguous; use %s", d.title(), s.Name, dependsOn, ref, alternatives(keys))
	}
	return nil
}

// named returns the objects of a kind with a name, in a namespace, in that of the component or in none.
func (s *set) named(k schema.GroupKind, name, namespace string) []*draft {
	var found []*draft
	places := []string{"", namespace, s.Namespace}
	slices.Sort(places)
	for _, ns := range slices.Compact(places) {
		if d := s.byKey[k.Group+"/"+k.Kind+"/"+ns+"/"+name]; d != nil {
			found = append(found, d)
		}
	}
	return found
}

// definitionOf returns what adds an object's kind to the API, nil if it is not in the set.
func (s *set) definitionOf(d *draft) *draft {
	if def := s.types.crds[d.kind]; def != nil {
		return def.draft
	}
	return s.types.services[schema.GroupVersion{Group: d.kind.Group, Version: d.Item.Version}]
}

// require adds an edge to an object without which d cannot exist.
func (s *set) require(d, need *draft, c class, what string) {
	if need == nil || need == d || slices.Contains(d.without, c) {
		return
	}
	d.needs[need] = true
	s.agree(d, need, what)
}

// agree reports orders that contradict an edge.
func (s *set) agree(d, need *draft, what string) {
	if d.Item.ApplyOrder < need.Item.ApplyOrder {
		s.add("%s: its %s/%s %d is below %d of %s, %s; raise it", d.title(), s.Name, applyOrder,
			d.Item.ApplyOrder, need.Item.ApplyOrder, need.title(), what)
	}
	if d.Item.DeleteOrder > need.Item.DeleteOrder {
		s.add("%s: its %s/%s %d is above %d of %s, %s; lower it", d.title(), s.Name, deleteOrder,
			d.Item.DeleteOrder, need.Item.DeleteOrder, need.title(), what)
	}
}

// prefer adds an edge to an object that d works better with, unless that contradicts the orders or
// another edge.
func (s *set) prefer(d, need *draft, c class) {
	if need == nil || need == d || slices.Contains(d.without, c) || d.needs[need] ||
		d.Item.ApplyOrder < need.Item.ApplyOrder || d.Item.DeleteOrder > need.Item.DeleteOrder ||
		need.reaches(d, map[*draft]bool{}) {
		return
	}
	d.needs[need] = true
}

// reaches reports whether d needs other, directly or through others.
func (d *draft) reaches(other *draft, seen map[*draft]bool) bool {
	if d.needs[other] {
		return true
	}
	seen[d] = true
	for next := range d.needs {
		if !seen[next] && next.reaches(other, seen) {
			return true
		}
	}
	return false
}

// accounts adds the edges from workloads to their ServiceAccounts, from there to the bindings that
// name them, and from bindings to their roles.
func (s *set) accounts() {
	bindings := map[string][]*draft{}
	for _, d := range s.order {
		if d.kind.Group != groupRBAC || !strings.HasSuffix(d.kind.Kind, "RoleBinding") {
			continue
		}
		s.prefer(d, s.byKey[groupRBAC+"/"+d.text("roleRef", "kind")+"/"+roleNamespace(d)+"/"+d.text("roleRef", "name")], classAccounts)
		for _, subject := range d.maps("subjects") {
			user := subjectOf(subject, d.Item.Namespace)
			bindings[user] = append(bindings[user], d)
		}
	}
	for _, d := range s.order {
		pod := podOf(d)
		if pod == nil {
			continue
		}
		account := firstText(pod.spec["serviceAccountName"], pod.spec["serviceAccount"], "default")
		s.prefer(d, s.byKey["/ServiceAccount/"+d.Item.Namespace+"/"+account], classAccounts)
		for _, user := range []string{
			serviceAccount(d.Item.Namespace, account), "system:serviceaccounts", "system:serviceaccounts:" + d.Item.Namespace,
		} {
			for _, binding := range bindings[user] {
				s.prefer(d, binding, classAccounts)
			}
		}
	}
}

// roleNamespace returns where the role of a binding is.
func roleNamespace(binding *draft) string {
	if binding.text("roleRef", "kind") == "Role" {
		return binding.Item.Namespace
	}
	return ""
}

// subjectOf returns the user or group that a subject of a binding stands for.
func subjectOf(subject map[string]any, namespace string) string {
	name, _ := subject["name"].(string)
	if subject["kind"] == "ServiceAccount" {
		return serviceAccount(firstText(subject["namespace"], namespace), name)
	}
	return name
}

func serviceAccount(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// firstText returns the first value that is a text and not empty.
func firstText(values ...any) string {
	for _, v := range values {
		if text, _ := v.(string); text != "" {
			return text
		}
	}
	return ""
}

// backends adds the edges from what the API server calls to the Service and the workloads that answer:
// from webhook configurations and APIServices, and from instances whose versions a webhook converts.
func (s *set) backends() {
	for _, d := range s.order {
		var services []any
		switch def := s.types.crds[d.kind]; {
		case isWebhook(d.kind):
			for _, hook := range d.maps("webhooks") {
				service, _, _ := unstructured.NestedFieldNoCopy(hook, "clientConfig", "service")
				services = append(services, service)
			}
		case isAPIService(d.kind):
			services = append(services, d.value("spec", "service"))
		case def != nil:
			services = append(services, def.value("spec", "conversion", "webhook", "clientConfig", "service"))
		}
		for _, service := range services {
			for _, need := range s.behind(service) {
				s.prefer(d, need, classBackends)
				d.backed = d.backed || d.needs[need]
			}
		}
	}
}

// behind returns the Service that a reference names, and the workloads that it selects.
func (s *set) behind(ref any) []*draft {
	fields, _ := ref.(map[string]any)
	service := s.byKey["/Service/"+firstText(fields["namespace"])+"/"+firstText(fields["name"])]
	if service == nil {
		return nil
	}
	if found, known := s.behindOf[service]; known {
		return found
	}
	found := []*draft{service}
	selector, _ := service.value("spec", "selector").(map[string]any)
	for _, d := range s.order {
		pod := podOf(d)
		if pod != nil && pod.stays && d.Item.Namespace == service.Item.Namespace && selects(selector, pod.labels) {
			found = append(found, d)
		}
	}
	s.behindOf[service] = found
	return found
}

// selects reports whether a selector selects labels. An empty selector selects nothing.
func selects(selector, labels map[string]any) bool {
	for key, value := range selector {
		if _, isText := value.(string); !isText || labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// pod is the template of a workload's Pods.
type pod struct {
	labels, spec map[string]any
	stays        bool // the Pods run until they are deleted, and can answer calls
}

// podOf returns the template of the Pods that an object runs, nil if it runs none.
func podOf(d *draft) *pod {
	path, ok := podPath(d.kind)
	if !ok {
		return nil
	}
	template := d.Manifest.Object
	if len(path) > 0 {
		template, _ = d.value(path...).(map[string]any)
	}
	spec, _ := template["spec"].(map[string]any)
	labels, _, _ := unstructured.NestedFieldNoCopy(template, "metadata", "labels")
	texts, _ := labels.(map[string]any)
	return &pod{labels: texts, spec: spec, stays: d.kind.Group != "batch" && d.kind.Kind != "PodTemplate"}
}

// podPath returns where a kind has the template of its Pods.
func podPath(k schema.GroupKind) (path []string, ok bool) {
	switch k {
	case schema.GroupKind{Kind: "Pod"}:
		return nil, true
	case schema.GroupKind{Kind: "PodTemplate"}:
		return []string{"template"}, true
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"},
		schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Kind: "ReplicationController"}:
		return []string{"spec", "template"}, true
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return []string{"spec", "jobTemplate", "spec", "template"}, true
	}
	return nil, false
}
