export { filesOf } from './load-kubeconfig.ts'
export { type OpenedKubeConfig, openKubeConfig } from './open-kubeconfig.ts'
