/** How an archive gets into a cluster's containerd. */
export const CLUSTERS = {
  kind: ({ archive, kindName }) => ['kind', 'load', 'image-archive', archive, '--name', kindName],
  k3s: ({ archive }) => ['k3s', 'ctr', 'images', 'import', archive],
}
