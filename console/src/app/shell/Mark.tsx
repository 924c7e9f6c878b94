/** The logo of the product: three stacked blocks. */
export function Mark({ size = 20 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 20 20" aria-hidden="true">
      <rect x="2" y="11" width="7.5" height="7" rx="1.6" fill="var(--bb-accent)" />
      <rect x="10.5" y="11" width="7.5" height="7" rx="1.6" fill="var(--bb-accent)" opacity="0.55" />
      <rect x="6.25" y="2.5" width="7.5" height="7" rx="1.6" fill="var(--bb-accent)" opacity="0.8" />
    </svg>
  );
}
