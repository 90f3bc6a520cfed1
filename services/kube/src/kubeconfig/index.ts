export { type OpenedKubeConfig, openKubeConfig } from './open-kubeconfig.ts'
