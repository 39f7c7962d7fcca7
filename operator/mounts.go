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

// mounts reads what [ManifestOptions.FromSecret] says, in the order of the flags, and reports
// every problem at once. f is parsed already.
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
		return fmt.Errorf("--%s cannot come from a Secret; these can: %s", m.flag, strings.Join(secretFlags(f), ", "))
	case flag.Changed:
		return fmt.Errorf("--%s is among the flags after -- too; leave one of them out", m.flag)
	case len(validation.IsDNS1123Subdomain(m.secret)) > 0 || len(validation.IsConfigMapKey(m.key)) > 0:
		return errors.New("say the name of a Secret and a key in it: FLAG=SECRET/KEY")
	}
	return nil
}

// secretive tells whether a flag was bound as a [Secret] or a [File].
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

// folder is where the keys of a Secret are in the container. Kubernetes brings the files up
// to date when the Secret changes.
func folder(operator, secret string) string { return path.Join("/etc", operator, secret) }

// setMounts gives the flags in f the mounted files, and returns them as arguments.
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

// mountAll lets the pod have the keys as files, each Secret as one volume with no other key of it.
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
