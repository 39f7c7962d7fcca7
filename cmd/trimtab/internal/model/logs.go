package model

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/logs"
)

// LogSource is a container of an operator.
type LogSource struct {
	Namespace, Pod, Container string
	// Restarted: an earlier container has a log, too.
	Restarted bool
}

// Current returns the container whatever came before it.
func (s LogSource) Current() LogSource {
	s.Restarted = false
	return s
}

// OperatorLogs returns the containers of the operator that looks after an object: of all its replicas. deployment names the
// operator's Deployment as NAMESPACE/NAME; if it is empty, that is the name of the operator's lease.
func (c *Cluster) OperatorLogs(ctx context.Context, r Ref, deployment string) ([]LogSource, error) {
	namespace, name, _ := strings.Cut(deployment, "/")
	holder := ""
	if deployment == "" {
		op, found := c.operatorOf(ctx, r)
		if !found {
			text := "no lease with a role of the same name, which may write the status of the kind"
			if unseen := c.Unseen(); len(unseen) > 0 {
				text = strings.Join(unseen, "; ")
			}
			return nil, fmt.Errorf("the operator of %s is not found (%s); name its Deployment with --operator NAMESPACE/NAME", r.Kind, text)
		}
		namespace, name, holder = op.Namespace, op.Name, op.Holder
	} else if namespace == "" || name == "" {
		return nil, fmt.Errorf("--operator: %q is not NAMESPACE/NAME of a Deployment", deployment)
	}
	pods, err := c.operatorPods(ctx, namespace, name, holder)
	if err != nil {
		return nil, err
	}
	var all []LogSource
	for _, pod := range pods {
		all = append(all, sourcesIn(&pod)...)
	}
	if len(all) == 0 {
		text := ""
		if holder != "" {
			text = "; its leader is " + holder
		}
		return nil, fmt.Errorf("operator %s/%s has no Pods in this cluster that have started%s; its log is wherever it runs", namespace, name, text)
	}
	return all, nil
}

// operatorPods returns the Pods that the Deployment selects, or the one of the leader if there is no such Deployment.
func (c *Cluster) operatorPods(ctx context.Context, namespace, name, holder string) ([]unstructured.Unstructured, error) {
	d, exists := c.get(ctx, Ref{"apps/v1", "Deployment", namespace, name})
	pods := &unstructured.UnstructuredList{}
	pods.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "PodList"})
	options := []client.ListOption{client.InNamespace(namespace)}
	if d != nil {
		selected, _, _ := unstructured.NestedStringMap(d.Object, "spec", "selector", "matchLabels")
		if len(selected) == 0 {
			return nil, fmt.Errorf("the Deployment %s/%s selects its Pods in another way than by labels; use kubectl logs", namespace, name)
		}
		options = append(options, client.MatchingLabels(selected))
	}
	if err := c.reader.List(ctx, pods, options...); err != nil {
		return nil, fmt.Errorf("the Pods of operator %s/%s cannot be listed: %w", namespace, name, err)
	}
	if d != nil {
		return pods.Items, nil
	}
	if exists {
		c.miss("the other replicas of the operator", errNoDeployment)
	}
	leader := podOf(holder)
	return slices.DeleteFunc(pods.Items, func(p unstructured.Unstructured) bool { return leader == "" || p.GetName() != leader }), nil
}

// sourcesIn returns the containers of a Pod that have started.
func sourcesIn(pod *unstructured.Unstructured) (all []LogSource) {
	list, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	for _, item := range list {
		status, is := item.(map[string]any)
		if !is {
			continue
		}
		name, _ := status["name"].(string)
		restarts, _, _ := unstructured.NestedInt64(status, "restartCount")
		_, waits, _ := unstructured.NestedMap(status, "state", "waiting")
		if waits && restarts == 0 {
			continue
		}
		all = append(all, LogSource{pod.GetNamespace(), pod.GetName(), name, restarts > 0})
	}
	return all
}

// LogLine is a line of the log of an operator about an object.
type LogLine struct {
	At      time.Time
	Level   string
	Message string
	// Values are the other keys that are not about which object it is, as key=value.
	Values string
	// Raw is the line as it was written.
	Raw string
}

// About parses a line of JSON, and reports whether it is about an object, by the keys of package logs. If the UID is known, a line
// about an earlier object of the same name is not. ok is false if the line is not JSON.
func About(raw []byte, r Ref, uid string) (line LogLine, about, ok bool) {
	var keys map[string]any
	if err := json.Unmarshal(raw, &keys); err != nil {
		return LogLine{}, false, false
	}
	text := func(key string) string { s, _ := keys[key].(string); return s }
	group := schema.FromAPIVersionAndKind(text("resource.apiVersion"), "").Group
	about = text("resource.kind") == r.Kind && group == r.gvk().Group && text("resource.name") == r.Name &&
		text("resource.namespace") == cmp.Or(r.Namespace, logs.NoNamespace) && (uid == "" || text("resource.uid") == "" || text("resource.uid") == uid)
	if !about {
		return LogLine{}, false, true
	}
	line = LogLine{Level: text("level"), Message: cmp.Or(text("msg"), text("message")), Raw: string(raw)}
	line.At, _ = time.Parse(time.RFC3339Nano, cmp.Or(text("time"), text("ts"))) // zero if it has none
	var values []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch key {
		case "level", "msg", "message", "time", "ts", "namespace", "name", "controller", "logger":
			continue
		}
		if !strings.HasPrefix(key, "resource.") && !strings.HasPrefix(key, "object.") {
			values = append(values, fmt.Sprintf("%s=%v", key, keys[key]))
		}
	}
	line.Values = strings.Join(values, " ")
	return line, true, true
}

// UID returns the UID of an object; empty if it does not exist or cannot be read.
func (c *Cluster) UID(ctx context.Context, r Ref) string {
	if u, _ := c.get(ctx, r); u != nil {
		return string(u.GetUID())
	}
	return ""
}
