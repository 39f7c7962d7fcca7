package scenarios

import (
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/external"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// TestCapabilities proves that a driver with points at which it can panic can do what the sample's
// driver can, no less and no more: engines ask for that.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ sample, played map[string]bool }{
		"streams": {
			sample: capabilities[*v1alpha1.Stream, *nats.Client, *nats.LiveStream](nats.Streams{}),
			played: capabilities[*v1alpha1.Stream, *nats.Client, *nats.LiveStream](streams(nil)),
		},
		"consumers": {
			sample: capabilities[*v1alpha1.Consumer, *nats.Client, *nats.LiveConsumer](nats.Consumers{}),
			played: capabilities[*v1alpha1.Consumer, *nats.Client, *nats.LiveConsumer](consumers(nil)),
		},
		"buckets": {
			sample: capabilities[*v1alpha1.KeyValue, *nats.Client, *nats.LiveStream](nats.KeyValues{}),
			played: capabilities[*v1alpha1.KeyValue, *nats.Client, *nats.LiveStream](buckets(nil)),
		},
		"folders": {
			sample: capabilities[*v1.Folder, *os.Root, fs.FileMode](folders{}),
			played: capabilities[*v1.Folder, *os.Root, fs.FileMode](disturbed{}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.sample, tt.played); diff != "" {
				t.Errorf("what the driver can do (-sample +as it is played):\n%s", diff)
			}
		})
	}
}

// capabilities are what a driver can do besides what every driver must.
func capabilities[T external.Object, C, O any](d external.Driver[T, C, O]) map[string]bool {
	can := map[string]bool{}
	_, can["Mark"] = d.(external.Marker[T, C])
	_, can["Unmark"] = d.(external.Unmarker[T, C])
	_, can["Update"] = d.(external.Updater[T, C, O])
	_, can["ExternalName"] = d.(external.Namer[T])
	_, can["Reflect"] = d.(external.Reflector[T, O])
	_, can["DependsOn"] = d.(external.Dependent[T])
	_, can["Classify"] = d.(external.Classifier)
	return can
}
