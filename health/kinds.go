package health

import (
	"cmp"
	"fmt"

	cliutils "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is what is known of a kind beyond kstatus. The zero value is nothing.
type kind struct {
	// observes: its controller always sets status.observedGeneration, so without it there is no status.
	observes bool
	// conditions must all be True.
	conditions []string
	// rule replaces kstatus.
	rule func(obj map[string]any) Result
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

// kinds returns the rules for kinds of Kubernetes that kstatus lacks or gets wrong, and what the
// controllers of widespread other kinds write into a status that is empty at first.
func kinds() map[schema.GroupKind]kind {
	known := map[schema.GroupKind]kind{
		{Kind: "Namespace"}:             {rule: phase("Active")},
		{Kind: "Node"}:                  {conditions: []string{"Ready"}},
		{Kind: "PersistentVolume"}:      {rule: volume},
		{Kind: "PersistentVolumeClaim"}: {rule: claim},
		{Kind: "Pod"}:                   {rule: pod},
		{Kind: "ReplicationController"}: {observes: true, rule: replicas},
		{Kind: "Service"}:               {rule: service},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {conditions: []string{"Established", "NamesAccepted"}},
		{Group: "apiregistration.k8s.io", Kind: "APIService"}:             {conditions: []string{"Available"}},
		{Group: "apps", Kind: "DaemonSet"}:                                {observes: true},
		{Group: "apps", Kind: "Deployment"}:                               {observes: true, rule: deployment},
		{Group: "apps", Kind: "ReplicaSet"}:                               {observes: true},
		{Group: "apps", Kind: "StatefulSet"}:                              {observes: true, rule: statefulSet},
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           {rule: autoscaler},
		{Group: "batch", Kind: "Job"}:                                     {rule: job},
		{Group: "networking.k8s.io", Kind: "Ingress"}:                     {rule: ingress},
		{Group: "policy", Kind: "PodDisruptionBudget"}:                    {observes: true},
		{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}:        {rule: snapshot},
		{Group: "argoproj.io", Kind: "Application"}:                       {rule: application},
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
			known[schema.GroupKind{Group: c.group, Kind: name}] = kind{conditions: c.conditions}
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

// phase is the rule of kinds that are ready in one phase.
func phase(ready string) func(map[string]any) Result {
	return func(obj map[string]any) Result {
		if is := fields(obj).text("status", "phase"); is != ready {
			return waiting("status.phase", "is in phase "+cmp.Or(is, "Unknown"))
		}
		return Result{Status: Current}
	}
}

func volume(obj map[string]any) Result {
	switch is := fields(obj).text("status", "phase"); is {
	case "Available", "Bound", "Released":
		return Result{Status: Current}
	case "Failed":
		return Result{Failed, explained("has failed", fields(obj).text("status", "message")), "status.phase"}
	default:
		return waiting("status.phase", "is in phase "+cmp.Or(is, "Pending"))
	}
}

func claim(obj map[string]any) Result {
	switch is := fields(obj).text("status", "phase"); is {
	case "Bound":
		return Result{Status: Current}
	case "Lost":
		return Result{Failed, "has lost its volume", "status.phase"}
	default:
		return waiting("status.phase", "is not bound to a volume")
	}
}

// service: a load balancer is ready when it has an address.
func service(obj map[string]any) Result {
	if o := fields(obj); o.text("spec", "type") == "LoadBalancer" && !o.has("status", "loadBalancer", "ingress") {
		return waiting("status.loadBalancer.ingress", "has no address of a load balancer yet")
	}
	return Result{Status: Current}
}

func ingress(obj map[string]any) Result {
	if !fields(obj).has("status", "loadBalancer", "ingress") {
		return waiting("status.loadBalancer.ingress", "has no address yet")
	}
	return Result{Status: Current}
}

// autoscaler: an autoscaler that cannot read its metrics does not scale. One whose target is scaled to
// zero on purpose is as it should be.
func autoscaler(obj map[string]any) Result {
	o := fields(obj)
	if o.text("apiVersion") == "autoscaling/v1" { // conditions are not in its status
		if o.number(-1, "status", "desiredReplicas") < 0 {
			return waiting("status.desiredReplicas", "has no status yet")
		}
		return Result{Status: Current}
	}
	for _, t := range []string{"AbleToScale", "ScalingActive"} {
		c := o.condition(t)
		if c.status == "True" || c.reason == "ScalingDisabled" {
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
func job(obj map[string]any) Result {
	o := fields(obj)
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
func pod(obj map[string]any) Result {
	o := fields(obj)
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
	r := byKstatus(&unstructured.Unstructured{Object: obj})
	if r.Path == "status" {
		r.Path = "status.phase"
	}
	return r
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
func deployment(obj map[string]any) Result {
	r := byKstatus(&unstructured.Unstructured{Object: obj})
	if r.Status != InProgress {
		return r
	}
	if paused, _, _ := unstructured.NestedBool(obj, "spec", "paused"); paused {
		return waiting("spec.paused", "is paused")
	}
	if c := fields(obj).condition("ReplicaFailure"); c.status == "True" {
		return waiting(conditionPath("ReplicaFailure"), explained(NotReady, c.words()))
	}
	return r
}

// statefulSet: kstatus considers one Current without any Pod if users replace the Pods.
func statefulSet(obj map[string]any) Result {
	r := byKstatus(&unstructured.Unstructured{Object: obj})
	if r.Status != Current {
		return r
	}
	return replicas(obj)
}

// replicas is the rule of what has replicas and says how many are ready.
func replicas(obj map[string]any) Result {
	o := fields(obj)
	want, is := o.number(1, "spec", "replicas"), o.number(0, "status", "readyReplicas")
	if is < want {
		return waiting("status.readyReplicas", fmt.Sprintf("is not ready: Ready: %d/%d", is, want))
	}
	return Result{Status: Current}
}

func snapshot(obj map[string]any) Result {
	if message := fields(obj).text("status", "error", "message"); message != "" {
		return waiting("status.error", explained(NotReady, message)) // it is tried again
	}
	if ready, _, _ := unstructured.NestedBool(obj, "status", "readyToUse"); !ready {
		return waiting("status.readyToUse", NotReady)
	}
	return Result{Status: Current}
}

// application: an Application of Argo CD is ready when what it installs is.
func application(obj map[string]any) Result {
	o := fields(obj)
	switch is := o.text("status", "health", "status"); is {
	case "Healthy":
		return Result{Status: Current}
	default:
		return waiting("status.health.status", explained("is "+cmp.Or(is, "Unknown"), o.text("status", "health", "message")))
	}
}

// isKnown reports whether kstatus or this package knows what the status of a kind says.
func isKnown(obj *unstructured.Unstructured) bool {
	_, ours := table[obj.GroupVersionKind().GroupKind()]
	return ours || cliutils.GetLegacyConditionsFn(obj) != nil
}
