package nack

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// renamed are fields with another name.
var renamed = map[string]string{ //nolint:gochecknoglobals // a constant table
	"durableName": "name", "streamName": "stream", "allowBatched": "allowBatchPublish", "headers_only": "headersOnly",
}

// lengths are fields that contain a duration.
var lengths = []string{ //nolint:gochecknoglobals // a constant table
	"maxAge", "duplicateWindow", "subjectDeleteMarkerTtl", "ackWait", "heartbeatInterval",
	"maxRequestExpires", "inactiveThreshold", "pinnedTtl", "ttl",
}

// fields converts the fields of a spec.
func (c *converter) fields(o *unstructured.Unstructured, spec map[string]any) {
	if stated("durableName", spec["durableName"]) != nil {
		delete(spec, "name") // the name of a consumer that is not durable
	}
	for _, field := range slices.Collect(maps.Keys(spec)) {
		value := stated(field, spec[field])
		delete(spec, field)
		if other, is := renamed[field]; is {
			field = other
		}
		if value != nil {
			spec[field] = value
		}
	}
	c.lengths(o, spec)
	if limits, ok := spec["consumerLimits"].(map[string]any); ok {
		c.lengths(o, limits)
	}
	if n, ok := whole(spec["limitMarkerTtl"]); ok { // nanoseconds
		spec["limitMarkerTtl"] = time.Duration(n).String()
	}
	if spec["priorityPolicy"] == "pinned_client" {
		spec["priorityPolicy"] = "pinnedClient"
	}
	if _, has := spec["backoff"]; has { // replaces ackWait
		delete(spec, "ackWait")
	}
	if stream, ok := spec["stream"].(string); ok {
		if object, has := c.streams[key{o.GetNamespace(), stream}]; has {
			spec["streamRef"] = map[string]any{"name": object}
		}
	}
}

// stated returns a value without the parts that mean nothing, or nil if nothing is left. Labels are kept.
func stated(field string, value any) any {
	switch v := value.(type) {
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	case []any:
		var out []any
		for _, x := range v {
			if x = stated("", x); x != nil {
				out = append(out, x)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case map[string]any:
		return statedIn(field, v)
	}
	if n, ok := whole(value); ok && (n == 0 || n == -1 && field != "maxAckPending") {
		return nil
	}
	return value
}

func statedIn(field string, object map[string]any) any {
	out := map[string]any{}
	for k, x := range object {
		if field != "metadata" {
			x = stated(k, x)
		}
		if other, is := renamed[k]; is && field != "metadata" {
			k = other
		}
		if x != nil {
			out[k] = x
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// whole returns a value as an integer, whatever type the decoder chose.
func whole(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}

// lengths converts durations. It omits those that mean nothing: zero, and the nanosecond that NACK's
// schema sets if ackWait is omitted.
func (c *converter) lengths(o *unstructured.Unstructured, in map[string]any) {
	for _, field := range lengths {
		said, ok := in[field].(string)
		if !ok {
			continue
		}
		d, err := time.ParseDuration(said)
		switch {
		case err != nil:
			c.remark(o, "%s: %q is not a duration; write it as 24h or 30s", field, said)
		case d == 0 || field == "ackWait" && d == time.Nanosecond:
			delete(in, field)
		default:
			in[field] = d.String()
		}
	}
	waits, _ := in["backoff"].([]any)
	for i, w := range waits {
		d, err := time.ParseDuration(fmt.Sprint(w))
		if err != nil {
			c.remark(o, "backoff: %q is not a duration; write it as 24h or 30s", fmt.Sprint(w))
			continue
		}
		waits[i] = d.String()
	}
}
