// A validating webhook for Bench objects, as kubebuilder would lay it out. BENCH_CERTS has tls.crt and tls.key.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"bench/api"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const most = 100

type validator struct{}

func (validator) check(bench *api.Bench) (admission.Warnings, error) {
	if bench.Spec.Replicas > most {
		return nil, fmt.Errorf("spec.replicas: Invalid value: %d: must be at most %d", bench.Spec.Replicas, most)
	}
	return nil, nil
}

func (v validator) ValidateCreate(_ context.Context, bench *api.Bench) (admission.Warnings, error) {
	return v.check(bench)
}

func (v validator) ValidateUpdate(_ context.Context, old, bench *api.Bench) (admission.Warnings, error) {
	if bench.Spec.Replicas < old.Spec.Replicas {
		return nil, errors.New("spec.replicas: Forbidden: may not shrink")
	}
	return v.check(bench)
}

func (validator) ValidateDelete(context.Context, *api.Bench) (admission.Warnings, error) {
	return nil, nil
}

func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	utilruntime.Must(api.AddToScheme(scheme))
	var port int
	if _, err := fmt.Sscan(os.Getenv("BENCH_PORT"), &port); err != nil {
		panic(err)
	}
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: os.Getenv("BENCH_CERTS")})
	server.Register("/validate", admission.WithValidator[*api.Bench](scheme, validator{}))
	if err := server.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}
