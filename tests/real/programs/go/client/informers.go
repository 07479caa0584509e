package main

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"konverge.invalid/real/steps"
)

// counter counts the events of an informer.
type counter struct{ added, updated, deleted atomic.Int64 }

func (c *counter) handlers() cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.added.Add(1) },
		UpdateFunc: func(any, any) { c.updated.Add(1) },
		DeleteFunc: func(any) { c.deleted.Add(1) },
	}
}

// watchInformers follows one ConfigMap through its life with a typed, a dynamic and a metadata informer.
func watchInformers(ctx context.Context, client kubernetes.Interface, config *rest.Config) {
	typed := informers.NewSharedInformerFactoryWithOptions(client, time.Hour, informers.WithNamespace(namespace))
	loose := dynamicinformer.NewFilteredDynamicSharedInformerFactory(
		dynamic.NewForConfigOrDie(config), time.Hour, namespace, nil)
	meta := metadatainformer.NewFilteredSharedInformerFactory(
		metadata.NewForConfigOrDie(config), time.Hour, namespace, nil)
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	counters := map[string]*counter{"typed": {}, "dynamic": {}, "metadata": {}}
	maps := typed.Core().V1().ConfigMaps()
	steps.Got(maps.Informer().AddEventHandler(counters["typed"].handlers()))
	steps.Got(loose.ForResource(resource).Informer().AddEventHandler(counters["dynamic"].handlers()))
	steps.Got(meta.ForResource(resource).Informer().AddEventHandler(counters["metadata"].handlers()))

	api := client.CoreV1().ConfigMaps(namespace)
	for _, name := range []string{"one", "two"} {
		steps.Got(api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
	}
	typed.Start(ctx.Done())
	loose.Start(ctx.Done())
	meta.Start(ctx.Done())
	typed.WaitForCacheSync(ctx.Done())
	loose.WaitForCacheSync(ctx.Done())
	meta.WaitForCacheSync(ctx.Done())
	found := steps.Got(maps.Lister().ConfigMaps(namespace).List(labels.Everything()))
	steps.Check(len(found) >= 2, "the cache has synced: %v", found)

	one := steps.Got(api.Get(ctx, "one", metav1.GetOptions{}))
	one.Data = map[string]string{"a": "1"}
	steps.Got(api.Update(ctx, one, metav1.UpdateOptions{}))
	steps.Must(api.Delete(ctx, "two", metav1.DeleteOptions{}), "delete")
	for name, seen := range counters {
		steps.Until(ctx, name, func() bool {
			return seen.added.Load() >= 2 && seen.updated.Load() >= 1 && seen.deleted.Load() == 1
		})
	}
	raw := steps.Got(loose.ForResource(resource).Lister().ByNamespace(namespace).Get("one"))
	text, _, _ := unstructured.NestedString(raw.(*unstructured.Unstructured).Object, "data", "a")
	steps.Check(text == "1", "dynamic: %v", raw)
	bare := steps.Got(meta.ForResource(resource).Lister().ByNamespace(namespace).Get("one"))
	steps.Check(bare.(*metav1.PartialObjectMetadata).Name == "one", "metadata: %v", bare)
	steps.Done("informers")
}
