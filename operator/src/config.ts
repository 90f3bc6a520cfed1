import { loadConfig } from '@tutti/chassis'
import { z } from 'zod'

/** The settings that the operator reads from its environment. */
export const OperatorConfig = z.object({
  kubeconfig: z.string().optional().meta({
    env: 'KUBECONFIG',
    description: 'Kubeconfig files, with `:` between them, for an operator outside the cluster.',
  }),
  serviceHost: z.string().optional().meta({
    env: 'KUBERNETES_SERVICE_HOST',
    description: 'Host of the API server; a pod has it. Not read with KUBECONFIG.',
  }),
  servicePort: z.string().optional().meta({
    env: 'KUBERNETES_SERVICE_PORT',
    description: 'Port of the API server; a pod has it. Not read with KUBECONFIG.',
  }),
  serviceAccountDir: z.string().default('/var/run/secrets/kubernetes.io/serviceaccount').meta({
    env: 'TUTTI_SERVICE_ACCOUNT_DIR',
    description: 'Holds `token` and `ca.crt`. Not read with KUBECONFIG.',
  }),
  podName: z.string().default('tutti-operator').meta({
    env: 'POD_NAME',
    description: 'Name of the pod, in the Lease and in events.',
  }),
  podNamespace: z.string().default('tutti-system').meta({
    env: 'POD_NAMESPACE',
    description: 'Namespace of the operator: of its Lease and its Secrets.',
  }),
})
export type OperatorConfig = z.infer<typeof OperatorConfig>

/** Reads and checks the operator's environment. @throws ServeError SETTING_INVALID that names each refused variable. */
export function loadOperatorConfig(
  env: Readonly<Record<string, string | undefined>>,
): Readonly<OperatorConfig> {
  return loadConfig(OperatorConfig, env)
}
