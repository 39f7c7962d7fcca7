//go:build never

// The module kubesim keeps every staging module of Kubernetes in its
// go.mod. k8s.io/kubernetes requires them at v0.0.0, which exists only inside
// its own repository; each needs an explicit version here for the module graph
// to load, and go mod tidy drops a requirement that no file imports. This file
// is never compiled: its constraint is never true.

package kubesim

import (
	_ "k8s.io/cloud-provider"
	_ "k8s.io/cluster-bootstrap/token/api"
	_ "k8s.io/code-generator"
	_ "k8s.io/cri-api/pkg/apis"
	_ "k8s.io/cri-client/pkg"
	_ "k8s.io/cri-streaming/pkg/streaming"
	_ "k8s.io/csi-translation-lib"
	_ "k8s.io/dynamic-resource-allocation/api"
	_ "k8s.io/endpointslice"
	_ "k8s.io/externaljwt/apis/v1"
	_ "k8s.io/kms/apis/v2"
	_ "k8s.io/kube-proxy/config/v1alpha1"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/kubelet/config/v1beta1"
	_ "k8s.io/metrics/pkg/apis/metrics"
	_ "k8s.io/mount-utils"
	_ "k8s.io/pod-security-admission/api"
	_ "k8s.io/sample-apiserver/pkg/apis/wardle"
)
