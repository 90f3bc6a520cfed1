import { ENGINES, listWords } from '@tutti/engines'
import { z } from 'zod'
import { cel, celPattern, listAtomic, listMap, listSet, text } from '../schema/cel.ts'
import {
  Datatype,
  fineDurationOrAuto,
  SecretRef,
  TensorShape,
  tensorName,
  whole,
} from '../schema/fields.ts'

/*
 * The fields of a Model about the model itself: where it is, and what of its config.pbtxt it overrides.
 */

const INT32_MAX = 2_147_483_647

const FORMATS = ENGINES.map(({ format, formatMeaning }) =>
  formatMeaning === undefined ? format : `${format} (${formatMeaning})`,
)

export const ModelFormat = z
  .strictObject({
    name: z.enum(ENGINES.map(({ format }) => format)).describe(`${listWords(FORMATS, 'or')}.`),
  })
  .describe('Format of the model.')

const TAG_OR_DIGEST =
  '(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})'
/**
 * Pattern of a path in an image: without a colon, by which the tag is found, without anything that Kubernetes would expand, and
 * neither the image's root nor a path that leads to it.
 */
const IMAGE_PATH = '/[!#%-\\-0-9;-?A-~][!#%-9;-?A-~]*'
const REPOSITORY = '[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*'
const IMAGE_REPOSITORY = `([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/)?${REPOSITORY}`
const STORAGE_URI = new RegExp(
  `^(${[
    'pvc://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[!-~]*)?',
    'https?://[A-Za-z0-9._:@%[\\]-]+/[!-~]+',
    's3://[a-z0-9][-a-z0-9.]+(/[!-~]*)?',
    'gs://[a-z0-9][-a-z0-9._]+(/[!-~]*)?',
    'as://[a-z0-9][-a-z0-9.]+/[$a-z0-9][-a-z0-9]+(/[!->@-~]*)?',
    'hf://[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*(@[!-.0-?A-~]+)?(/[!-~]*)?',
    `oci://[A-Za-z0-9.-]+(:[0-9]+)?/${REPOSITORY}${TAG_OR_DIGEST}(/[!-~]*)?`,
    'hostPath:///[!-~]+',
    `image://${IMAGE_REPOSITORY}${TAG_OR_DIGEST}${IMAGE_PATH}`,
  ].join('|')})$`,
)
/** A URI in which the tag looks like the port of a registry. */
const IS_PORT = /^image:\/\/([^/:@]+[.][^/:@]+|localhost):[0-9]+\/[^:@]*$/
/** A user before the host; behind that of an image a digest may follow. */
const HAS_USER = /^((https?|s3|gs|as|hf|oci):\/\/[^/]*@|image:\/\/[^/]*@[^/:]*(:[0-9]{1,5})?\/)/
const CLIMBS = /(^|\/)\.\.(\/|$)/
const WANTED_URI =
  'pvc://CLAIM/PATH, http(s)://HOST/PATH (a tar archive), s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, as://ACCOUNT/CONTAINER/PREFIX, hf://OWNER/NAME@REVISION/PATH, oci://HOST/REPOSITORY:TAG/PATH, image://REPOSITORY:TAG/PATH or hostPath:///PATH'
const WANTED_TAG = 'a tag or a digest behind the repository: image://HOST:PORT/REPOSITORY:TAG/PATH'

/** Makes a rule that leaves addresses with a user to the rule about these: its text shows what came. */
const unlessUser = (rule: string) => `self.matches(${celPattern(HAS_USER)}) || ${rule}`
const celGot = (want: string) => `"got '" + self + "', want ${want}"`

export const StorageUri = cel(
  text({ min: 1, max: 1024 }),
  {
    rule: unlessUser(`self.matches(${celPattern(STORAGE_URI)})`),
    message: `want ${WANTED_URI}`,
    messageExpression: celGot(WANTED_URI),
  },
  // Not said with the address: a password in it would be in every log of the API server's answers.
  {
    rule: `!self.matches(${celPattern(HAS_USER)})`,
    message:
      'got a user in the address, want the user in the Secret of secretRef, or for image:// in an imagePullSecret',
  },
  {
    rule: unlessUser(`!self.matches(${celPattern(CLIMBS)})`),
    message: "want a path without '..'",
    messageExpression: celGot("a path without '..'"),
  },
  {
    rule: unlessUser(`!self.matches(${celPattern(IS_PORT)})`),
    message: `want ${WANTED_TAG}`,
    messageExpression: celGot(WANTED_TAG),
  },
).describe(`The model's directory, which holds config.pbtxt and 1/: ${WANTED_URI}.`)

export const ModelStorage = z
  .strictObject({
    secretRef: SecretRef.optional().describe(
      'Credentials for http(s):// (username and password, or token), s3:// (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL), gs:// (GOOGLE_APPLICATION_CREDENTIALS), as:// (AZURE_STORAGE_KEY, or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET), hf:// (HF_TOKEN, HF_ENDPOINT) and oci:// (.dockerconfigjson, or username and password, or token).',
    ),
    digest: text({
      max: 71,
      pattern: /^sha256:[0-9a-f]{64}$/,
      want: 'sha256: and 64 digits of 0-9 and a-f',
    })
      .optional()
      .describe('Digest that the fetched files must have: sha256:HEX.'),
  })
  .describe('How `storageUri` is read.')
export type ModelStorage = z.infer<typeof ModelStorage>

export const VersionPolicy = cel(
  z.strictObject({
    latest: z
      .strictObject({ numVersions: whole(1, 1000, 'Number of versions.') })
      .optional()
      .describe('The newest versions.'),
    all: z.strictObject({}).optional().describe('Every version.'),
    specific: z
      .strictObject({
        versions: listSet(z.int().min(0).max(Number.MAX_SAFE_INTEGER), {
          min: 1,
          max: 64,
        }).describe('Version numbers.'),
      })
      .optional()
      .describe('Certain versions.'),
  }),
  {
    rule: '(has(self.latest) ? 1 : 0) + (has(self.all) ? 1 : 0) + (has(self.specific) ? 1 : 0) == 1',
    message: 'want one of latest, all and specific',
  },
).describe('Which versions are served.')

export const ModelInstances = z
  .strictObject({
    count: whole(1, 1024, 'Executions at the same time in one pod; with GPUs, on each of them.'),
    kind: z
      .enum(['KIND_AUTO', 'KIND_CPU', 'KIND_GPU', 'KIND_MODEL'])
      .optional()
      .describe(
        'Where they run; KIND_GPU is each device of the pod, whatever `gpus` of the repository says. Default: as the repository says, else KIND_AUTO.',
      ),
    sharedInterpreter: z
      .boolean()
      .optional()
      .describe(
        'Python models: those on one device are threads of one process, which imports the model once. Default false: a process for each.',
      ),
  })
  .describe('The instance group, in place of those of the repository.')

const tensor = (side: string) => ({
  name: tensorName(`Name of the ${side}.`),
  datatype: Datatype,
  shape: TensorShape,
})

export const ResourceInput = z.strictObject({
  ...tensor('input'),
  optional: z.boolean().optional().describe('A request may leave it out. Default false.'),
})
export type ResourceInput = z.infer<typeof ResourceInput>

export const ResourceOutput = z.strictObject(tensor('output'))
export type ResourceOutput = z.infer<typeof ResourceOutput>

export const ModelBatching = z
  .strictObject({
    preferredBatchSizes: listAtomic(z.int().min(1).max(INT32_MAX), { max: 32 })
      .optional()
      .describe('Batch sizes for which requests wait up to maxQueueDelay.'),
    maxQueueDelay: fineDurationOrAuto(
      'How long a request may wait for others, e.g. 100us; auto: as long as it pays, by the measured arrivals and execution times.',
    ).optional(),
    maxQueueLength: whole(
      1,
      INT32_MAX,
      'Requests that may wait; further ones are refused.',
    ).optional(),
  })
  .describe('Dynamic batching. Absent fields keep the values of config.pbtxt.')

const WarmupInput = cel(
  z.strictObject({
    ...tensor('input'),
    data: z.enum(['Zero', 'Random', 'File']).describe('Where the values come from.'),
    file: text({ min: 1, max: 253, pattern: /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/ })
      .optional()
      .describe("Name of the file in the model's directory warmup/, with the data File only."),
  }),
  {
    rule: "has(self.file) == (self.data == 'File')",
    message: 'want `file` with the data File, and only there',
    field: 'file',
  },
)

export const WarmupSamples = listMap(
  z.strictObject({
    name: text({ min: 1, max: 128, pattern: /^[A-Za-z0-9_][A-Za-z0-9_. -]*$/ }).describe(
      'Name of the sample.',
    ),
    batchSize: whole(0, INT32_MAX, 'Size of the batch. Default 0: no batch dimension.').optional(),
    count: whole(1, 1000, 'Number of executions. Default 1.').optional(),
    inputs: listMap(WarmupInput, 'name', { min: 1, max: 64 }).describe('Inputs of the sample.'),
  }),
  'name',
  { max: 16 },
).describe('Requests that a version executes before it is ready.')
export type WarmupSamples = z.infer<typeof WarmupSamples>

/** The least and greatest number of `inputs` and of `outputs`. */
export const TENSORS = { min: 1, max: 128 } as const

export const MaxBatchSize = z.int().min(0).max(INT32_MAX)
