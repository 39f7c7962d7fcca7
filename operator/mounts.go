package operator

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// mount is a flag whose value is a key of a Secret.
type mount struct{ flag, secret, key string }

// mounts returns the mounts for fromSecret ([ManifestOptions.FromSecret]), sorted by flag. It
// reports all problems at once. f has been parsed already.
func mounts(fromSecret map[string]string, f *pflag.FlagSet) ([]mount, error) {
	var out []mount
	var problems []error
	for _, flag := range slices.Sorted(maps.Keys(fromSecret)) {
		m := mount{flag: flag}
		m.secret, m.key, _ = strings.Cut(fromSecret[flag], "/")
		if err := m.check(f); err != nil {
			problems = append(problems, fmt.Errorf("--from-secret %s=%s: %w", flag, fromSecret[flag], err))
			continue
		}
		out = append(out, m)
	}
	return out, errors.Join(problems...)
}

func (m mount) check(f *pflag.FlagSet) error {
	flag := f.Lookup(m.flag)
	switch {
	case flag == nil || !secretive(flag):
		return fmt.Errorf("--%s cannot be taken from a Secret; these flags can: %s", m.flag, strings.Join(secretFlags(f), ", "))
	case flag.Changed:
		return fmt.Errorf("--%s is also given after --; remove one of the two", m.flag)
	case len(validation.IsDNS1123Subdomain(m.secret)) > 0 || len(validation.IsConfigMapKey(m.key)) > 0:
		return errors.New("name a Secret and a key in it: FLAG=SECRET/KEY")
	}
	return nil
}

// secretive reports whether a flag is a [Secret] or a [File].
func secretive(f *pflag.Flag) bool {
	switch f.Value.(type) {
	case *Secret, *File:
		return true
	}
	return false
}

func secretFlags(f *pflag.FlagSet) []string {
	var out []string
	f.VisitAll(func(flag *pflag.Flag) {
		if secretive(flag) {
			out = append(out, "--"+flag.Name)
		}
	})
	if len(out) == 0 {
		return []string{"none of this operator"}
	}
	return out
}

// folder is the directory of a Secret's keys in the container. Kubernetes updates the files when
// the Secret changes.
func folder(operator, secret string) string { return path.Join("/etc", operator, secret) }

// setMounts sets the flags in f to the mounted files and returns them as arguments.
func setMounts(operator string, all []mount, f *pflag.FlagSet) ([]string, error) {
	var out []string
	for _, m := range all {
		file := path.Join(folder(operator, m.secret), m.key)
		if _, is := f.Lookup(m.flag).Value.(*Secret); is {
			file = fromFile + ":" + file
		}
		if err := f.Set(m.flag, file); err != nil {
			return nil, fmt.Errorf("--from-secret: %w", err)
		}
		out = append(out, "--"+m.flag+"="+file)
	}
	return out, nil
}

// mountAll mounts the keys as files into the pod: one volume per Secret, without its other keys.
func mountAll(operator string, all []mount, pod *corev1.PodSpec) {
	keys := map[string][]string{}
	for _, m := range all {
		keys[m.secret] = append(keys[m.secret], m.key)
	}
	for i, secret := range slices.Sorted(maps.Keys(keys)) {
		var items []corev1.KeyToPath
		slices.Sort(keys[secret])
		for _, key := range slices.Compact(keys[secret]) {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
		name := fmt.Sprintf("secret-%d", i+1)
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: items},
		}})
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: name, MountPath: folder(operator, secret), ReadOnly: true})
	}
}
