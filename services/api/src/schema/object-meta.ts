import { z } from 'zod'
import { bytesOf, isQualifiedName, LABEL_VALUE, SUBDOMAIN } from './fields.ts'

/*
 * metadata as the API server takes it of a person. It is not part of the CRD: the API server has its own rules, these
 * are the same.
 */

const ANNOTATION_BYTES = 262_144

const labels = z
  .record(z.string(), z.string())
  .refine(
    (map) =>
      Object.entries(map).every(
        ([key, value]) => isQualifiedName(key) && value.length <= 63 && LABEL_VALUE.test(value),
      ),
    'want keys and values as Kubernetes has them for labels',
  )

const annotations = z
  .record(z.string(), z.string())
  .refine(
    (map) => Object.keys(map).every((key) => isQualifiedName(key.toLowerCase())),
    'want keys of the form [PREFIX/]NAME as Kubernetes has them',
  )
  .refine(
    (map) => bytesOf(map) <= ANNOTATION_BYTES,
    `want at most ${ANNOTATION_BYTES} bytes in all`,
  )

/** The metadata of an object. Fields that the API server itself sets are passed through. */
export const ObjectMeta = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(253)
    .regex(SUBDOMAIN, { error: 'want a DNS subdomain: a-z, 0-9, - and .' }),
  namespace: z
    .string()
    .max(63)
    .regex(/^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$/, { error: 'want a DNS label: a-z, 0-9 and -' })
    .optional(),
  labels: labels.optional(),
  annotations: annotations.optional(),
  finalizers: z.array(z.string()).optional(),
  ownerReferences: z.array(z.unknown()).optional(),
  generateName: z.string().optional(),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  generation: z.int().optional(),
  creationTimestamp: z.string().nullable().optional(),
  deletionTimestamp: z.string().optional(),
  deletionGracePeriodSeconds: z.int().optional(),
  managedFields: z.array(z.unknown()).optional(),
  selfLink: z.string().optional(),
})
export type ObjectMeta = z.infer<typeof ObjectMeta>
