package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const finalizer = "go.konverge.dev/farewell"

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var greeting Greeting
	if err := r.Get(ctx, request.NamespacedName, &greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !greeting.DeletionTimestamp.IsZero() {
		controllerutil.RemoveFinalizer(&greeting, finalizer)
		return ctrl.Result{}, r.Update(ctx, &greeting)
	}
	if controllerutil.AddFinalizer(&greeting, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &greeting)
	}
	if err := r.say(ctx, &greeting); err != nil {
		return ctrl.Result{}, err
	}
	greeting.Status = GreetingStatus{Said: greeting.Spec.Text, ObservedGeneration: greeting.Generation}
	return ctrl.Result{}, r.Status().Update(ctx, &greeting)
}

func (r *reconciler) say(ctx context.Context, greeting *Greeting) error {
	said := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: greeting.Name, Namespace: greeting.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, said, func() error {
		said.Data = map[string]string{"text": greeting.Spec.Text}
		return controllerutil.SetControllerReference(greeting, said, r.Scheme())
	})
	return err
}
