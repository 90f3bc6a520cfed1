import { toNatsSettings } from './nats/nats-flags.ts'
import type { OperatorFlags } from './operator-flags.ts'
import type { RouterDefaults } from './resources/router-deployment.ts'
import type { StepSettings } from './resources/step-settings.ts'

/** What the flags say about steps. @throws ServeError FLAG_INVALID */
export function toStepSettings({
  flags,
  namespace,
}: {
  readonly flags: OperatorFlags
  /** Of the operator. */
  readonly namespace: string
}): StepSettings {
  const { urls, prefix, servers } = toNatsSettings(flags)
  return {
    image: flags['step-image'],
    imagePullPolicy: flags['step-image-pull-policy'],
    imagePullSecrets: flags['image-pull-secret'],
    nats: {
      servers: urls,
      prefix,
      hasAuthorities: servers.kind === 'external' && servers.hasAuthorities,
    },
    allowsHostPath: flags['allow-host-path'],
    network: {
      isEnabled: flags['network-policies'],
      operatorNamespace: namespace,
      // As the chart labels its pods; operators of others have the first, too.
      operatorLabels: {
        'app.kubernetes.io/component': 'operator',
        'app.kubernetes.io/part-of': 'tutti',
      },
      scrapers: flags['scrape-namespace'].map((name) => ({
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
      })),
    },
  }
}

/** What the flags say about routers. */
export function toRouterDefaults(
  flags: OperatorFlags,
  { nats, network, imagePullSecrets }: StepSettings,
): RouterDefaults {
  return {
    image: flags['router-image'],
    imagePullPolicy: flags['router-image-pull-policy'],
    imagePullSecrets,
    allowsImage: flags['allow-router-image'],
    replicas: flags['router-replicas'],
    nats,
    network,
  }
}
