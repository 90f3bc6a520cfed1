import {
  Accelerator,
  inOurWords,
  ModelResources,
  toMilliseconds,
  toProblemText,
  toSchemaProblems,
} from '@tutti/ensemble'
import { assert } from '@tutti/errors'
import type { ConfigMap, Stored } from '@tutti/kube'
import { z } from 'zod'

/** On the ConfigMap of a namespace that rules its router; its name is free. */
export const ROUTER_SETTINGS_LABEL = 'tutti.dev/router-settings'

const whole = (o: { min: number; max: number }) =>
  z
    .string()
    .regex(/^[0-9]{1,16}$/, { error: ({ input }) => `got ${quote(input)}, want a whole number` })
    .transform(Number)
    .pipe(z.number().min(o.min).max(o.max))

const WANTED_DRAIN = { error: 'want 1s to 24h' }

const quote = (input: unknown): string => JSON.stringify(String(input).slice(0, 64))

/** A value that is JSON. */
const json = <T extends z.ZodType>(schema: T) =>
  z
    .string()
    .max(16_384)
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text)
      } catch {
        context.addIssue({ code: 'custom', message: `got ${quote(text)}, want JSON` })
        return z.NEVER
      }
    })
    .pipe(schema)

const { nodeSelector, tolerations } = Accelerator.shape

/** The data of the ConfigMap. Every key is optional, and none else is allowed. */
export const RouterSettings = z.strictObject({
  replicas: whole({ min: 1, max: 100 })
    .optional()
    .describe('Pods of the router. Default: `--router-replicas` of the operator.'),
  image: z
    .string()
    .regex(/^\S{1,1024}$/, { error: 'want an image reference' })
    .optional()
    .describe('Image of the router. Default: `--router-image` of the operator.'),
  resources: json(ModelResources)
    .optional()
    .describe(
      'JSON: `requests` and `limits`, as in a pod. Default: requests of 250m CPU and 512Mi, a limit of 2Gi of memory.',
    ),
  nodeSelector: json(nodeSelector.unwrap())
    .optional()
    .describe('JSON: labels that a node needs. Default: none.'),
  tolerations: json(tolerations.unwrap())
    .optional()
    .describe('JSON: tolerations, as in a pod. Default: none.'),
  maxInFlightRequests: whole({ min: 1, max: 10_000_000 })
    .optional()
    .describe(
      'Requests that a pod works on at the same time; further ones are refused. Default: 4096.',
    ),
  maxInFlightBytes: whole({ min: 1, max: Number.MAX_SAFE_INTEGER })
    .optional()
    .describe('Bytes of them. Default: 1073741824; keep it below the limit of memory.'),
  drainTimeout: z
    .string()
    .regex(/^([0-9]{1,5}(h|m|s|ms)){1,4}$/, { error: 'want a duration, e.g. 30s' })
    .transform(toMilliseconds)
    .pipe(z.number().min(1000, WANTED_DRAIN).max(86_400_000, WANTED_DRAIN))
    .optional()
    .describe('Time for requests in flight when a pod ends, 1s to 24h. Default: 30s.'),
  logVerbose: whole({ min: 0, max: 10 }).optional().describe('Above 0: debug lines. Default: 0.'),
  clientNamespaces: z
    .string()
    .regex(/^(\*|[a-z0-9-]{1,63}(,[a-z0-9-]{1,63}){0,63})$/, {
      error: 'want namespaces with commas between them, or *',
    })
    .transform((text) => text.split(','))
    .optional()
    .describe(
      'Namespaces whose pods may call the router beside those of its own, with commas between them; `*` for all. Default: none.',
    ),
})
export type RouterSettings = z.infer<typeof RouterSettings>

export type RouterSettingsVerdict =
  | { readonly isValid: true; readonly settings: RouterSettings }
  /** `problem` is one line; `at` is the ConfigMap that has it. */
  | { readonly isValid: false; readonly problem: string; readonly at: Stored<ConfigMap> }

/**
 * Reads the settings of a namespace's router.
 *
 * @param configMaps - those of the namespace with the label; none means all defaults.
 */
export function judgeRouterSettings(
  configMaps: readonly Stored<ConfigMap>[],
): RouterSettingsVerdict {
  const [first, second] = configMaps.toSorted((one, other) =>
    one.metadata.name < other.metadata.name ? -1 : 1,
  )
  if (first === undefined) return { isValid: true, settings: {} }
  const name = `ConfigMap "${first.metadata.name}"`
  if (second !== undefined) {
    const problem = `${name} and "${second.metadata.name}" both have the label ${ROUTER_SETTINGS_LABEL}, want one of them`
    return { isValid: false, problem, at: second }
  }
  const { success, data, error } = RouterSettings.safeParse(first.data ?? {}, { error: inOurWords })
  if (success) return { isValid: true, settings: data }
  const [problem] = toSchemaProblems(RouterSettings, error)
  assert(problem !== undefined, 'bug: an error of a schema has no problem')
  const text = `${name}, ${toProblemText([{ ...problem, path: ['data', ...problem.path] }])}`
  return { isValid: false, problem: text, at: first }
}
