package api

// Annotations that Helm writes on the objects of a release.
const (
	AnnotationHelmReleaseName      = "meta.helm.sh/release-name"
	AnnotationHelmReleaseNamespace = "meta.helm.sh/release-namespace"
)

// SuffixHelmRelease, after the name of an operator and a slash, is the annotation with which a component that comes from
// a Helm chart takes over the Helm release of its name, or gives it back.
const SuffixHelmRelease = "helm-release"

// HelmReleaseOf returns the Helm release to which an object with these annotations belongs, as namespace/name. Empty
// means that it belongs to none.
func HelmReleaseOf(annotations map[string]string) string {
	if annotations[AnnotationHelmReleaseName] == "" {
		return ""
	}
	return annotations[AnnotationHelmReleaseNamespace] + "/" + annotations[AnnotationHelmReleaseName]
}
