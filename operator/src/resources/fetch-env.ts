import { z } from 'zod'

const Variable = z
  .strictObject({
    name: z.string().regex(/^[-._a-zA-Z][-._a-zA-Z0-9]*$/),
    value: z.string().optional(),
    valueFrom: z
      .strictObject({
        secretKeyRef: z.strictObject({
          name: z.string().min(1),
          key: z.string().min(1),
          optional: z.boolean().optional(),
        }),
      })
      .optional(),
  })
  .refine(({ value, valueFrom }) => (value === undefined) !== (valueFrom === undefined), {
    error: 'want one of value and valueFrom',
  })

/** Environment variables that an installation gives to the containers that fetch models. Secrets are in the namespace of the pods. */
export const FetchEnv = z.array(Variable)
export type FetchEnv = z.infer<typeof FetchEnv>
