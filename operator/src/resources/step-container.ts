import type { Container } from '@tutti/kube'
import type { StepSettings } from './step-settings.ts'

/** What all containers of the step image have: the restricted Pod Security Standard, and where their home is. */
export function stepContainer(
  name: string,
  settings: Pick<StepSettings, 'image' | 'imagePullPolicy'>,
  args: readonly string[],
): Container {
  return {
    name,
    image: settings.image,
    imagePullPolicy: settings.imagePullPolicy,
    command: ['tutti-step'],
    args,
    // Libraries that keep caches in the home would fail on a root that is read-only.
    env: [{ name: 'HOME', value: '/tmp' }],
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      readOnlyRootFilesystem: true,
    },
    terminationMessagePolicy: 'FallbackToLogsOnError',
  }
}
