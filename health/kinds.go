package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	cliutils "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is what is known of a kind beyond kstatus. The zero value is nothing.
//
// Invariant: no object is held to be worse than kstatus says because something is absent that a cluster may
// never provide, such as an address, metrics, or a controller. Something that was written says so: a
// condition, a phase, an error. TestNeverStricter lists what.
type kind struct {
	// observes: its controller sets status.observedGeneration, so an object that is not ready and has none
	// has not been looked at.
	observes bool
	// server are the conditions that the API server itself writes. All must be True.
	server []string
	// conditions must be True as soon as somebody has written them.
	conditions []string
	// custom: its objects are custom resources, and their controller writes a status.
	custom bool
	// rule turns what kstatus says of an object into what it is.
	rule func(o fields, kstatus Result) Result
}

// immediate are the kinds that are ready as soon as they exist.
var immediate = map[schema.GroupKind]bool{ //nolint:gochecknoglobals // a constant table
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "ServiceAccount"}: true,
	{Kind: "LimitRange"}:     true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                                true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                      true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                                true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                               true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   true,
}

// Immediate reports whether objects of a kind are ready as soon as they exist. They have no status, and
// nothing but their metadata needs to be known of them.
func Immediate(kind schema.GroupKind) bool { return immediate[kind] }

// table is what is known of kinds.
var table = kinds() //nolint:gochecknoglobals // a constant table

// kinds returns the rules for kinds of Kubernetes that kstatus lacks or gets wrong, and the conditions that
// the controllers of widespread other kinds write. docs/health.md describes each.
func kinds() map[schema.GroupKind]kind {
	known := map[schema.GroupKind]kind{
		{Kind: "Namespace"}:             {rule: beyond(namespace)},
		{Kind: "Node"}:                  {conditions: []string{"Ready"}},
		{Kind: "PersistentVolume"}:      {rule: beyond(volume)},
		{Kind: "PersistentVolumeClaim"}: {rule: claim},
		{Kind: "Pod"}:                   {rule: pod},
		{Kind: "ReplicationController"}: {rule: beyond(replicas)},
		{Kind: "Service"}:               {rule: beyond(service)},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {server: []string{"Established", "NamesAccepted"}},
		{Group: "apiregistration.k8s.io", Kind: "APIService"}:             {server: []string{"Available"}},
		{Group: "apps", Kind: "DaemonSet"}:                                {observes: true},
		{Group: "apps", Kind: "Deployment"}:                               {observes: true, rule: deployment},
		{Group: "apps", Kind: "ReplicaSet"}:                               {observes: true},
		{Group: "apps", Kind: "StatefulSet"}:                              {observes: true, rule: beyond(replicas)},
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           {rule: beyond(autoscaler)},
		{Group: "batch", Kind: "Job"}:                                     {rule: job},
		{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}:        {custom: true, rule: beyond(snapshot)},
		{Group: "argoproj.io", Kind: "Application"}:                       {custom: true, rule: beyond(application)},
	}
	for _, c := range []struct {
		group      string
		conditions []string
		kinds      []string
	}{
		{"cert-manager.io", []string{"Ready"}, []string{"Certificate", "CertificateRequest", "ClusterIssuer", "Issuer"}},
		{"external-secrets.io", []string{"Ready"}, []string{"ClusterSecretStore", "ExternalSecret", "SecretStore"}},
		{"gateway.networking.k8s.io", []string{"Accepted"}, []string{"GatewayClass"}},
		{"gateway.networking.k8s.io", []string{"Programmed"}, []string{"Gateway"}},
		{"helm.toolkit.fluxcd.io", []string{"Ready"}, []string{"HelmRelease"}},
		{"kafka.strimzi.io", []string{"Ready"}, []string{"Kafka", "KafkaConnect", "KafkaTopic", "KafkaUser"}},
		{"keda.sh", []string{"Ready"}, []string{"ScaledJob", "ScaledObject"}},
		{"kustomize.toolkit.fluxcd.io", []string{"Ready"}, []string{"Kustomization"}},
		{"monitoring.coreos.com", []string{"Available"}, []string{"Alertmanager", "Prometheus"}},
		{"pkg.crossplane.io", []string{"Healthy", "Installed"}, []string{"Configuration", "Function", "Provider"}},
		{"apiextensions.crossplane.io", []string{"Established"}, []string{"CompositeResourceDefinition"}},
		{"postgresql.cnpg.io", []string{"Ready"}, []string{"Cluster"}},
		{"rabbitmq.com", []string{"AllReplicasReady"}, []string{"RabbitmqCluster"}},
		{"serving.knative.dev", []string{"Ready"}, []string{"Configuration", "Revision", "Route", "Service"}},
		{"source.toolkit.fluxcd.io", []string{"Ready"}, []string{"Bucket", "GitRepository", "HelmChart", "OCIRepository"}},
	} {
		for _, name := range c.kinds {
			known[schema.GroupKind{Group: c.group, Kind: name}] = kind{custom: true, conditions: c.conditions}
		}
	}
	return known
}

// text returns a text of an object, and nothing if there is none.
func (o fields) text(path ...string) string {
	s, _, _ := unstructured.NestedString(o, path...)
	return s
}

// number returns a number of an object, and otherwise if there is none.
func (o fields) number(otherwise int64, path ...string) int64 {
	if n, found, err := unstructured.NestedInt64(o, path...); found && err == nil {
		return n
	}
	return otherwise
}

// has reports whether an object has a list with elements.
func (o fields) has(path ...string) bool {
	value, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	list, _ := value.([]any)
	return len(list) > 0
}

func waiting(path, why string) Result { return Result{InProgress, why, path} }

// beyond is a rule that doubts what kstatus considers Current.
func beyond(doubt func(fields) Result) func(fields, Result) Result {
	return func(o fields, kstatus Result) Result {
		if kstatus.Status != Current {
			return kstatus
		}
		return doubt(o)
	}
}

func namespace(o fields) Result {
	if is := o.text("status", "phase"); is != "" && is != "Active" {
		return waiting("status.phase", "is in phase "+is)
	}
	return Result{Status: Current}
}

// volume: the API server itself makes a new one Pending, so that phase says nothing.
func volume(o fields) Result {
	if o.text("status", "phase") == "Failed" {
		return Result{Failed, explained("has failed", o.text("status", "message")), "status.phase"}
	}
	return Result{Status: Current}
}

func claim(o fields, kstatus Result) Result {
	switch {
	case kstatus.Status == Current:
		return kstatus
	case o.text("status", "phase") == "Lost":
		return Result{Failed, "has lost its volume", "status.phase"}
	}
	return waiting("status.phase", "is not bound to a volume")
}

// service: a load balancer without an address is waited for only once a controller works on it. Those of
// cloud providers add this finalizer before they ask for one. Many clusters have no such controller.
func service(o fields) Result {
	const cleanup = "service.kubernetes.io/load-balancer-cleanup"
	finalizers, _, _ := unstructured.NestedStringSlice(o, "metadata", "finalizers")
	if o.text("spec", "type") == "LoadBalancer" && slices.Contains(finalizers, cleanup) && !o.has("status", "loadBalancer", "ingress") {
		return waiting("status.loadBalancer.ingress", "has no address of a load balancer yet")
	}
	return Result{Status: Current}
}

// autoscaler: one whose target cannot be scaled, or whose spec is wrong, does not work. Metrics that are not
// there are no failure: clusters without them are common, and each new Pod lacks them for a while. One whose
// target is scaled to zero on purpose is as it should be.
func autoscaler(o fields) Result {
	for _, t := range []string{"AbleToScale", "ScalingActive"} {
		c := o.condition(t)
		if !c.written || c.status == "True" || c.reason == "ScalingDisabled" || t == "ScalingActive" && strings.HasPrefix(c.reason, "FailedGet") {
			continue
		}
		r := waiting(conditionPath(t), explained("has condition "+t+" "+c.status, c.words()))
		if c.reason == "InvalidSelector" || c.reason == "InvalidMetricSourceType" {
			r.Status = Failed
		}
		return r
	}
	return Result{Status: Current}
}

// job: a Job is ready when it is complete. It has failed as soon as that is certain, not only when its
// last Pod is gone. Others suspend Jobs, too, for example to queue them, so a suspended Job is not ready.
func job(o fields, _ Result) Result {
	for _, t := range []string{"Failed", "FailureTarget"} {
		if c := o.condition(t); c.status == "True" {
			return Result{Failed, explained("has failed", c.words()), conditionPath(t)}
		}
	}
	if o.condition("Complete").status == "True" {
		return Result{Status: Current}
	}
	if c := o.condition("Suspended"); c.status == "True" {
		return waiting(conditionPath("Suspended"), explained("is suspended", c.words()))
	}
	return waiting(conditionPath("Complete"), fmt.Sprintf("has not completed: %d active, %d succeeded, %d failed",
		o.number(0, "status", "active"), o.number(0, "status", "succeeded"), o.number(0, "status", "failed")))
}

// pod: a Pod that cannot be scheduled may be scheduled on a node that comes, so it has not failed. One that
// has ended without success has.
func pod(o fields, kstatus Result) Result {
	switch o.text("status", "phase") {
	case "Failed":
		return Result{Failed, explained("has failed", cmp.Or(o.text("status", "message"), o.text("status", "reason"))), "status.phase"}
	case "Pending":
		if c := o.condition("PodScheduled"); c.status == "False" {
			return waiting(conditionPath("PodScheduled"), explained("is not scheduled", c.words()))
		}
		if name, why := o.waitingContainer(); why != "" {
			return waiting("status.containerStatuses["+name+"].state.waiting", "has container "+name+" waiting: "+why)
		}
		return waiting("status.phase", "is pending")
	}
	if kstatus.Path == "status" {
		kstatus.Path = "status.phase"
	}
	return kstatus
}

// waitingContainer returns the first container of a Pod that waits for something, and for what.
func (o fields) waitingContainer() (name, why string) {
	for _, kind := range []string{"initContainerStatuses", "containerStatuses"} {
		list, _, _ := unstructured.NestedFieldNoCopy(o, "status", kind)
		containers, _ := list.([]any)
		for _, c := range containers {
			m, _ := c.(map[string]any)
			if reason := fields(m).text("state", "waiting", "reason"); reason != "" {
				return fields(m).text("name"), explained(reason, fields(m).text("state", "waiting", "message"))
			}
		}
	}
	return "", ""
}

// deployment adds to kstatus why Pods cannot be created and that a rollout is paused.
func deployment(o fields, kstatus Result) Result {
	if kstatus.Status != InProgress {
		return kstatus
	}
	if paused, _, _ := unstructured.NestedBool(o, "spec", "paused"); paused {
		return waiting("spec.paused", "is paused")
	}
	if c := o.condition("ReplicaFailure"); c.status == "True" {
		return waiting(conditionPath("ReplicaFailure"), explained(NotReady, c.words()))
	}
	return kstatus
}

// replicas is the rule of what says how many replicas are ready, once its controller has looked at it.
// kstatus knows nothing of ReplicationControllers, and considers a StatefulSet Current without any Pod if
// users replace the Pods.
func replicas(o fields) Result {
	want, is := o.number(1, "spec", "replicas"), o.number(0, "status", "readyReplicas")
	if o.observed() && is < want {
		return waiting("status.readyReplicas", fmt.Sprintf("is not ready: Ready: %d/%d", is, want))
	}
	return Result{Status: Current}
}

func snapshot(o fields) Result {
	if message := o.text("status", "error", "message"); message != "" {
		return waiting("status.error", explained(NotReady, message)) // it is tried again
	}
	if ready, said, _ := unstructured.NestedBool(o, "status", "readyToUse"); said && !ready {
		return waiting("status.readyToUse", NotReady)
	}
	return Result{Status: Current}
}

// application: an Application of Argo CD is ready when what it installs is.
func application(o fields) Result {
	if is := o.text("status", "health", "status"); is != "" && is != "Healthy" {
		return waiting("status.health.status", explained("is "+is, o.text("status", "health", "message")))
	}
	return Result{Status: Current}
}

// judge returns the health of an object by kstatus and what is known of its kind.
func (k kind) judge(obj *unstructured.Unstructured) Result {
	o, r := fields(obj.Object), byKstatus(obj)
	if k.rule != nil {
		r = k.rule(o, r)
	}
	if r.Status == InProgress && k.observes && !o.observed() {
		return waiting(observedPath, "has no "+observedPath+" yet")
	}
	return r
}

// speaks reports whether the status of a kind is known never to be silent: Kubernetes itself writes it.
func speaks(obj *unstructured.Unstructured) bool {
	known, ours := table[obj.GroupVersionKind().GroupKind()]
	return ours && !known.custom || cliutils.GetLegacyConditionsFn(obj) != nil
}
