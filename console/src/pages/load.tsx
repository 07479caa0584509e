// How busy the cluster is: queues of controllers, requests to the API server.

import { LoadPlots } from "../parts/loadPlots";
import { t } from "../texts";

export function LoadPage() {
  return (
    <div class="load-page">
      <h1>{t("load.title")}</h1>
      <p class="quiet">{t("load.about")}</p>
      <LoadPlots kind="" />
    </div>
  );
}
