package model

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// created: the objects that a controller of Kubernetes has to create are refused.
func (a *asking) created(ctx context.Context, o Object) *Cause {
	if o.live == nil || ofOperator(o.gvk().Group) {
		return nil
	}
	all := statusOf(o.live).Conditions
	for _, kind := range []string{"ReplicaFailure", "FailureTarget", "Failed"} {
		c := condition(all, kind)
		if c == nil || c.Status != metav1.ConditionTrue {
			continue
		}
		if cause := a.lacked(ctx, o, c.Message); cause != nil {
			return cause
		}
		cause := &Cause{Code: Failed, Text: c.Message, Evidence: []string{fmt.Sprintf("condition %s (%s)", kind, c.Reason)}, Remedy: "correct what it says"}
		if code := codeOf(c.Message); code != "" {
			cause.Code = code
		}
		switch {
		case cause.Code == Quota:
			cause.Remedy = fmt.Sprintf("raise the quota of namespace %s or delete what needs it: %s", o.Namespace, a.commands.Line(o.Namespace, "describe", "resourcequota"))
		case o.Kind == "Job":
			cause.Remedy = "look at its log, then delete it to have it run again: " + a.commands.Line(o.Namespace, "logs", "job/"+o.Name)
		}
		return cause
	}
	return nil
}

// ofPod: why a Pod is not ready.
func (a *asking) ofPod(ctx context.Context, o Object) *Cause {
	if o.live == nil || o.APIVersion != "v1" || o.Kind != "Pod" {
		return nil
	}
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.live.Object, &pod); err != nil {
		return nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return a.unscheduled(ctx, pod, c)
		}
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if cause := a.ofContainer(ctx, o, pod, c); cause != nil {
			return cause
		}
	}
	return nil
}

// unscheduled: no node takes it, perhaps because a claim has no volume.
func (a *asking) unscheduled(ctx context.Context, pod corev1.Pod, c corev1.PodCondition) *Cause {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim := a.object(ctx, Ref{"v1", "PersistentVolumeClaim", pod.Namespace, v.PersistentVolumeClaim.ClaimName}, "named")
		if rank(claim) < 2 && !a.visited[claim.Ref] {
			return a.behind(ctx, "needs "+claim.String(), claim)
		}
	}
	return &Cause{
		Code: Unschedulable, Text: orElse(c.Message, "no node takes it"), Evidence: []string{"condition PodScheduled is False (" + c.Reason + ")"},
		Remedy: "add a node that fits, or change what the Pod asks for",
	}
}

func (a *asking) ofContainer(ctx context.Context, o Object, pod corev1.Pod, c corev1.ContainerStatus) *Cause {
	logs := func(more ...string) string {
		return a.commands.Line(pod.Namespace, append([]string{"logs", pod.Name, "-c", c.Name}, more...)...)
	}
	if w := c.State.Waiting; w != nil {
		evidence := []string{fmt.Sprintf("container %s waits: %s", c.Name, w.Reason)}
		switch {
		case strings.Contains(w.Reason, "Image"), w.Reason == "ErrImagePull":
			return &Cause{Code: Image, Text: fmt.Sprintf("image %s cannot be pulled: %s", c.Image, orElse(w.Message, w.Reason)), Evidence: evidence, Remedy: "correct the image's name, or the Secret with which it is pulled"}
		case w.Reason == "CrashLoopBackOff":
			cause := &Cause{Code: Crash, Text: fmt.Sprintf("container %s has ended %d times", c.Name, c.RestartCount), Evidence: evidence, Remedy: logs("--previous")}
			if t := c.LastTerminationState.Terminated; t != nil {
				cause.ended(*t)
			}
			return cause
		case w.Reason == "CreateContainerConfigError":
			if cause := a.lacked(ctx, o, w.Message); cause != nil {
				return cause
			}
			return &Cause{Code: Refused, Text: w.Message, Evidence: evidence, Remedy: "correct the container's configuration"}
		}
		return nil
	}
	if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
		cause := &Cause{Code: Crash, Text: fmt.Sprintf("container %s has ended", c.Name), Remedy: logs()}
		cause.ended(*t)
		return cause
	}
	if c.State.Running != nil && !c.Ready && pod.Status.Phase == corev1.PodRunning {
		cause := &Cause{Code: Unready, Text: fmt.Sprintf("container %s runs and is not ready", c.Name), Remedy: logs()}
		if reason, note := a.warning(ctx, o.live); note != "" {
			cause.Evidence = append(cause.Evidence, "event "+reason+": "+note)
		}
		return cause
	}
	return nil
}

// ended adds how a container has ended.
func (c *Cause) ended(t corev1.ContainerStateTerminated) {
	c.Text += fmt.Sprintf(", last with code %d (%s)", t.ExitCode, t.Reason)
	if t.Message != "" {
		c.Evidence = append(c.Evidence, "its last words: "+t.Message)
	}
	if t.Reason == "OOMKilled" {
		c.Remedy = "raise its memory limit, or find out what takes the memory"
	}
}

// lack finds the kind and the name of what a component of Kubernetes has not found: secret "x" not found.
var lack = regexp.MustCompile(`\b([a-z]+) "([-a-z0-9.]+)" not found`)

// lacked continues with an object that was not found.
func (a *asking) lacked(ctx context.Context, o Object, text string) *Cause {
	m := lack.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	kind, ok := a.kindOf(m[1], "")
	if !ok {
		return nil
	}
	next := a.object(ctx, Ref{kind.GroupVersion().String(), kind.Kind, o.Namespace, m[2]}, "named")
	if !next.missing {
		return nil
	}
	return a.behind(ctx, text, next)
}

// ofClaim: why a claim has no volume.
func (a *asking) ofClaim(ctx context.Context, o Object) *Cause {
	if o.live == nil || o.Kind != "PersistentVolumeClaim" || o.APIVersion != "v1" || o.Deleting {
		return nil
	}
	class, _, _ := unstructured.NestedString(o.live.Object, "spec", "storageClassName")
	if class != "" {
		next := a.object(ctx, Ref{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Name: class}, "named")
		if next.missing {
			return a.behind(ctx, "needs StorageClass "+class, next)
		}
	}
	cause := &Cause{Code: Claim, Text: "has no volume", Remedy: "look at the provisioner of its storage class"}
	if class == "" {
		cause.Text = "has no volume, and names no storage class"
		cause.Remedy = "name a storage class, mark one as the default, or create a volume that fits"
	}
	if reason, note := a.warning(ctx, o.live); note != "" {
		cause.Evidence = append(cause.Evidence, "event "+reason+": "+note)
	}
	return cause
}
