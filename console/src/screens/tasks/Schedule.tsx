import { TextInput } from "@mantine/core";
import { Time } from "../../components/Time";
import { inWords, nextRuns } from "./tasks";
import classes from "./Tasks.module.css";

const NEXT_SHOWN = 3;

/** An input for a schedule. It shows the schedule in words and its next runs. */
export function Schedule({ value, onChange, disabled = false, error }: { value: string; onChange: (value: string) => void; disabled?: boolean; error?: string | undefined }) {
  const words = inWords(value);
  const next = nextRuns(value, NEXT_SHOWN);
  return (
    <div>
      <TextInput
        label="Schedule"
        description="Cron in UTC: minute, hour, day, month, weekday"
        classNames={{ input: "mono" }}
        value={value}
        disabled={disabled}
        error={error}
        spellCheck={false}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
      <div className={classes.meaning} role="status">
        {words === undefined ? (
          <span className="dim">Five fields, such as <code className="mono">*/15 * * * *</code></span>
        ) : (
          <>
            <strong>{words}</strong>
            {next.length === 0 ? (
              <span className="dim">It never comes.</span>
            ) : (
              <ol>
                {next.map((date) => (
                  <li key={date.getTime()}>
                    <Time at={date.getTime()} exact />
                  </li>
                ))}
              </ol>
            )}
          </>
        )}
      </div>
    </div>
  );
}
