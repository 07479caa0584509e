// Memory of one cache of Secrets: whole objects, or metadata alone. It prints what bench/_cache_worker.py prints.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"bench/common"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

const settle = 5 * time.Second

func kind(name string) client.Object {
	if os.Args[1] == "whole" {
		if name == "Namespace" {
			return &corev1.Namespace{}
		}
		return &corev1.Secret{}
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(name))
	return obj
}

func list(name string) client.ObjectList {
	if os.Args[1] == "whole" {
		return &corev1.SecretList{}
	}
	objs := &metav1.PartialObjectMetadataList{}
	objs.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(name + "List"))
	return objs
}

func resident(key string) float64 {
	text, err := os.ReadFile("/proc/self/status")
	check(err)
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, key) {
			var kilobytes float64
			_, err := fmt.Sscanf(strings.Fields(line)[1], "%f", &kilobytes)
			check(err)
			return kilobytes / 1024
		}
	}
	panic(key)
}

func cpu() float64 {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)/1e6
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctrl.SetLogger(zap.New())
	ctx := context.Background()
	config := ctrl.GetConfigOrDie()
	config.QPS = -1
	objects, err := cache.New(config, cache.Options{
		Scheme:            clientgoscheme.Scheme,
		DefaultNamespaces: map[string]cache.Config{common.Namespace(): {}},
		DefaultTransform:  cache.TransformStripManagedFields(),
	})
	check(err)
	go func() { check(objects.Start(ctx)) }()
	_, err = objects.GetInformer(ctx, kind("Namespace"))
	check(err)
	before, began := resident("VmRSS"), cpu()
	_, err = objects.GetInformer(ctx, kind("Secret"))
	check(err)
	spent := cpu() - began
	time.Sleep(settle)
	figures := map[string]float64{
		"memory": resident("VmRSS") - before, "peak": resident("VmHWM") - before, "cpu": spent,
	}
	held := list("Secret")
	check(objects.List(ctx, held))
	if secrets, ok := held.(*corev1.SecretList); ok {
		figures["objects"] = float64(len(secrets.Items))
	} else {
		figures["objects"] = float64(len(held.(*metav1.PartialObjectMetadataList).Items))
	}
	text, err := json.Marshal(figures)
	check(err)
	fmt.Println(string(text))
}
