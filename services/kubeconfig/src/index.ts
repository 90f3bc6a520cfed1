export { type ForwardedPort, type ForwardOptions, forwardPort } from './forward-port.ts'
export { filesOf } from './load-kubeconfig.ts'
export { type OpenedKubeConfig, openKubeConfig } from './open-kubeconfig.ts'
