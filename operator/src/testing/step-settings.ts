import type { StepPodSettings } from '../resources/step-settings.ts'

/** Builds settings of steps as an installation has them. */
export function stepSettings(o: Partial<StepPodSettings> = {}): StepPodSettings {
  return {
    image: 'registry.example/tutti-step:1.0.0',
    pythonImage: 'registry.example/tutti-step-python:1.0.0',
    imagePullPolicy: 'IfNotPresent',
    imagePullSecrets: [],
    hasAssignedUser: false,
    proxies: {},
    nats: {
      servers: ['nats://tutti-nats:4222'],
      prefix: 'tutti',
      secret: 'tutti-nats',
      hasAuthorities: false,
    },
    metricsConfig: [],
    allowsHostAccess: false,
    network: {
      isEnabled: true,
      operatorNamespace: 'tutti-system',
      operatorLabels: { 'app.kubernetes.io/name': 'tutti-operator' },
      scrapers: [],
      meshPorts: [],
    },
    ...o,
  }
}
